//go:build !core

package main

import (
	"github.com/lockstep-dns/lockstep/extensions/migrate"
	"github.com/lockstep-dns/lockstep/extensions/zoneimport"
	"github.com/lockstep-dns/lockstep/pkg/plugin"
)

var extensions = []plugin.Extension{
	{NewCommand: zoneimport.NewCommand, Undone: zoneimport.ErrIncomplete},
	{NewCommand: migrate.NewCommand, Undone: migrate.ErrStepsLeft},
}
