// Package doctor judges an installation for the person on call: Judge takes facts and returns findings, each with what was found and what
// to do. It is pure: no client, no clock. Package survey reads the facts, and the plugin's command "doctor" prints the findings.
package doctor
