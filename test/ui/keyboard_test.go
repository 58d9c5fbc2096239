package ui

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	pluginui "github.com/lockstep-dns/lockstep/pkg/plugin/ui"
)

// active is an expression for the title and the server's column of the cell with the focus.
const active = `(() => { const c = document.activeElement, r = c.closest(".row"); return r ? r.querySelector(".name .word").textContent + " " + c.ariaColIndex : c.id; })()`

// The keys reach everything, and the focus survives updates, scrolling and rows that go.
func testKeyboard(p *tab) {
	c, zones := fleet(200, 3)
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(cell("zone-0000.example", ""))
	expect := func(what, want string) {
		p.Helper()
		p.await(active + " === " + quote(want) + " /* " + what + " */")
	}
	p.press(keys.tab, keys.tab, keys.tab)
	expect("Tab reaches the table after the filters", "zone-0000.example 1")
	p.press(keys.down, keys.right, keys.right)
	expect("arrows", "zone-0001.example 3")
	p.press(keys.home)
	expect("Home", "zone-0001.example 1")
	p.press(keys.end, keys.right)
	expect("End, and no further", "zone-0001.example 4")
	p.press(keys.pageDown, keys.pageDown)
	p.await(active + `.startsWith("zone-00")`)
	p.press(keys.up, keys.up)

	// An update changes the cell that has the focus, and a new row comes before it: the focus stays.
	before := p.text(active)
	for _, z := range zones {
		c.set(z, breakServer(2, v1alpha1.StateStale))
	}
	c.set(newZone("dns", "aaa.example", 1, 2), nil)
	p.await(`document.getElementById("count").textContent.startsWith("201 zones, 200 not")`)
	expect("an update", before)
	// Scrolled out of sight, it waits, and comes back with the next key.
	p.eval(`document.getElementById("viewport").scrollTop = 1e6`)
	p.await(`document.activeElement.id === "viewport"`)
	p.press(keys.left)
	expect("a key after scrolling", strings.Replace(before, " 4", " 3", 1))

	p.press(keys.enter)
	expect("Enter opens the cell", "detail-heading")
	p.press(keys.escape)
	expect("Escape closes it", strings.Replace(before, " 4", " 3", 1))
	p.press(keys.home)
	p.await(active + `.endsWith(" 1")`)
	zone := strings.TrimSuffix(p.text(active), " 1")
	p.press(keys.enter)
	p.await(`document.getElementById("heading").textContent === ` + quote(zone))
	expect("the zone's own row", zone+" 1")
	p.press(keys.escape)
	p.await(`document.getElementById("heading").textContent === "Zones"`)
	expect("Escape goes back to the zone", zone+" 1")
	if s := p.text(`getComputedStyle(document.activeElement).outlineStyle`); s != "solid" {
		p.Errorf("the focus has outline %s", s)
	}
	// When the last row goes, the focus is at the heading.
	p.eval(`document.getElementById("only").click()`)
	for _, z := range zones {
		c.set(z, func(o *v1alpha1.SyncStatus) { *o = *newZone("dns", z.Zone, 1, 2) })
	}
	p.await(`document.getElementById("empty").innerText === "Everything is in sync."`)
	expect("nothing left", "heading")
}

// Zones of fleets without a common server are grouped, and each group has its servers.
func testFleets(p *tab) {
	c := newReplay()
	for _, namespace := range []string{"team-a", "team-b"} {
		for i := range 30 {
			c.set(newZone(namespace, fmt.Sprintf("%02d.%s.example", i, namespace), 1, 1+len(namespace)%2), nil)
		}
	}
	lost := newStatus("DNSZone", "team-c", "lost", "lost.example")
	lost.Status = v1alpha1.SyncStatusStatus{Phase: v1alpha1.PhaseFailed, FailureReason: "NotPermitted", FailureMessage: "no grant"}
	c.set(lost, nil)
	p.open(c.serve(p, pluginui.Scope{}))
	p.await(`document.getElementById("count").textContent === "61 zones, 1 not in sync"`)
	p.click(`document.getElementById("only")`)
	p.await(`document.querySelectorAll(".body > .row").length === 1`)
	p.await(`(` + cell("lost.example", "") + `).innerText.includes("NotPermitted team-c/lost")`)
	p.click(`document.getElementById("only")`)
	p.click(`document.getElementById("search")`)
	p.press(strings.Split("29.team", "")...)
	p.await(`document.querySelectorAll(".body > .row:not(.servers)").length === 2 && document.querySelectorAll(".body > .row.servers").length === 1`)
	p.await(state("29.team-b.example", "dns-primary-0-0") + ` === "InSync"`)
	p.press(keys.escape)
	p.await(`document.getElementById("search").value === ""`)
	p.await(`document.getElementById("heading").textContent === "Zones"`)
	// The keys step over the head of a group.
	p.click(cell("00.team-a.example", ""))
	p.await(`document.getElementById("heading").textContent === "00.team-a.example"`)
	p.press(keys.escape)
	p.await(`document.getElementById("heading").textContent === "Zones"`) // The zone has a row of that name in its own view too.
	p.await(active + ` === "00.team-a.example 1"`)
	for range 30 {
		p.press(keys.down)
	}
	p.await(active + ` === "00.team-b.example 1"`)
	p.press(keys.up)
	p.await(active + ` === "29.team-a.example 1"`)
	c.remove(newZone("team-a", "29.team-a.example", 1, 1))
	p.await(active + ` === "00.team-b.example 1"`)
}

// A zone has an address: Back and a reload work, and no token is left in it.
func testAddress(p *tab) {
	c, _ := fleet(3, 2)
	url := c.serve(p, pluginui.Scope{Namespace: "dns"})
	p.open(url)
	p.await(cell("zone-0001.example", ""))
	base := url[:strings.Index(url, "?")]
	if got := p.text(`location.href`); got != base {
		p.Errorf("the address is %s, want %s", got, base)
	}
	if got := p.number(`history.length`); got > 2 {
		p.Errorf("%g entries in the history", got)
	}
	p.click(cell("zone-0001.example", ""))
	p.await(`document.getElementById("heading").textContent === "zone-0001.example"`)
	do(p, chromedp.Reload())
	p.await(`document.getElementById("heading").textContent === "zone-0001.example"`)
	p.await(cell("zone-0001.example", "dns-primary-0-0"))
	p.eval(`history.back()`)
	p.await(`document.getElementById("heading").textContent === "Zones"`)
	p.await(cell("zone-0002.example", ""))
}
