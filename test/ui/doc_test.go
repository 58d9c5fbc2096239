// Package ui tests the page of `kubectl lockstep ui` in a real browser, Debian's chromium: how it renders with what a replay gives it, and
// all of it on a real cluster.
package ui
