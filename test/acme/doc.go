// Package acme tests what docs/guides/acme.md says with real ACME clients and pebble, the authority that Let's Encrypt has for tests: that
// they get certificates, and that their key opens nothing else. It is a module of its own, so that the product depends on none of them.
package acme
