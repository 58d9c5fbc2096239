package ui

import (
	"slices"
	"strings"

	"github.com/chromedp/cdproto/accessibility"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	pluginui "github.com/lockstep-dns/lockstep/pkg/plugin/ui"
)

// Screen readers get roles and names: which server a cell is of, and how far behind it is.
func testAccessibility(p *tab) {
	c, zones := fleet(50, 3)
	c.set(zones[1], breakServer(2, v1alpha1.StateStale, func(s *v1alpha1.ServerStatus) { s.SerialLag = new(int64(4)) }))
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(state("zone-0001.example", "dns-secondary-1-0") + ` === "Stale"`)
	p.click(cell("zone-0001.example", "dns-secondary-1-0"))
	p.await(`document.querySelector("#detail .compare, #detail .soft")`)
	p.press(keys.escape)
	p.click(cell("zone-0001.example", "dns-secondary-1-0"))
	seen := map[string][]string{}
	for _, n := range call(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if !n.Ignored && n.Role != nil && n.Name != nil {
			role := strings.Trim(n.Role.Value.String(), `"`)
			seen[role] = append(seen[role], strings.Trim(n.Name.Value.String(), `"`))
		}
	}
	for role, want := range map[string]string{
		"grid":         "Zones",
		"columnheader": "dns-secondary-1-0, Secondary, 1 not in sync",
		"rowheader":    "zone-0001.example, zone-0001-example, Propagating, 2 of 3 servers in sync",
		"gridcell":     "dns-secondary-1-0: Stale, 4 serials behind",
		"region":       "zone-0001.example DNSZone dns/zone-0001-example on dns-secondary-1-0",
		"checkbox":     "Only not in sync",
		"searchbox":    "Filter by name",
		"button":       "Close",
		"heading":      "Changes since this page was opened",
		"status":       "",
	} {
		if !slices.Contains(seen[role], want) {
			p.Errorf("no %s is called %q, but %.300q", role, want, seen[role])
		}
	}
	for _, role := range []string{"button", "checkbox", "searchbox", "gridcell", "rowheader", "region", "heading"} {
		if slices.Contains(seen[role], "") {
			p.Errorf("a %s has no name", role)
		}
	}
	if rows := p.text(`document.getElementById("viewport").ariaRowCount`); rows != "51" {
		p.Errorf("aria-rowcount is %s", rows)
	}
}

// contrast returns the texts of the page whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3).
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
	const bad = new Set();
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement;
		if (!walker.currentNode.data.trim() || !e.checkVisibility({ visibilityProperty: true })) continue;
		const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 4.5) bad.add(((a + 0.05) / (b + 0.05)).toFixed(2) + " " + walker.currentNode.data.slice(0, 40));
	}
	return [...bad];
})()`

// In light and dark, on wide and narrow screens, every text is legible and nothing runs out of the page.
func testAppearance(p *tab) {
	c := busyFleet()
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(state("shop.example", "dns-secondary-1-0") + ` === "Unreachable"`)
	c.set(newZone("dns", "late.example", 1, 2), nil)
	p.await(`document.querySelector("#timeline li")`)
	backgrounds := map[string]bool{}
	for _, width := range []int64{1360, 900, 390, 320} {
		p.resize(width, 800)
		for _, scheme := range []string{"light", "dark"} {
			p.prefer(scheme)
			for _, open := range []bool{false, true} {
				if open {
					p.click(cell("shop.example", "dns-secondary-1-0"))
					p.await(`document.querySelector("#detail .events li")`)
				}
				if bad := eval[[]string](p, contrast); len(bad) > 0 {
					p.Errorf("%s, %d wide: low contrast of %q", scheme, width, bad)
				}
				if over := p.number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
					p.Errorf("%s, %d wide: the page is %g too wide", scheme, width, over)
				}
			}
			p.press(keys.escape)
			backgrounds[p.text(`getComputedStyle(document.body).backgroundColor`)] = true
		}
		if width == 390 {
			if cut := p.number(`[...document.querySelectorAll(".row.servers .server")].filter((e) => e.scrollHeight > e.clientHeight + 1).length`); cut > 0 {
				p.Errorf("%g names of servers are cut", cut)
			}
		}
	}
	if len(backgrounds) != 2 {
		p.Errorf("light and dark have the backgrounds %v", backgrounds)
	}
}
