// Package vantage tests from outside: network namespaces stand for the Internet, with a real named in each.
package vantage
