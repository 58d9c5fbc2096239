package ui

import (
	"testing"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// TestPage tests how the page renders, each part in a tab of its own.
func TestPage(t *testing.T) {
	kube.WithoutCluster(t)
	browser := startBrowser(t)
	for name, test := range map[string]func(*tab){
		"thousand zones": testThousandZones, "keyboard": testKeyboard, "accessibility": testAccessibility, "appearance": testAppearance,
		"hostile text": testHostileText, "watches": testWatches, "silence": testSilence, "refusals": testRefusals, "fleets": testFleets, "detail": testDetail,
		"timeline": testTimeline, "address": testAddress,
	} {
		t.Run(name, func(t *testing.T) { test(newTab(t, browser)) })
	}
}
