// Package status computes the status of objects: condition types, reasons, messages, phases. It is pure: no client, no
// clock. Reconcilers and listeners call it and write what it returns.
package status
