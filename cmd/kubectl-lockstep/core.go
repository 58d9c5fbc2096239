//go:build core

package main

import "github.com/lockstep-dns/lockstep/pkg/plugin"

// The tag "core" builds the plugin without extensions.
var extensions []plugin.Extension
