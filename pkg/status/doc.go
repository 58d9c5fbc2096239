// Package status decides what the status of an object says: condition types, reasons, messages, phases. It takes
// values and gives values: no client, no clock. Reconcilers and listeners call it and write what it returns.
package status
