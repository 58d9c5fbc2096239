// Package bindcar is the HTTP API of the sidecar beside every named, and its client. The API adds, changes and removes
// zones, and streams notifications of new serials. It is compatible with the public sidecar of the same name.
//
// The server is package sidecar. The controller is the one caller in production; the API server reads notifications.
package bindcar
