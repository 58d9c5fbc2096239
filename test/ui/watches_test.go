package ui

import (
	"fmt"
	"net/http"

	"github.com/chromedp/cdproto/page"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	pluginui "github.com/lockstep-dns/lockstep/pkg/plugin/ui"
)

// Watches that end, break or fail do not lose a change; meanwhile the page says so.
func testWatches(p *tab) {
	c, zones := fleet(3, 2)
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(`document.getElementById("connection").dataset.state === "live"`)
	shows := func(i int, want string) {
		p.Helper()
		p.await(state(fmt.Sprintf("zone-%04d.example", i), "dns-secondary-0-0") + " === " + quote(want))
	}
	lists := func() int { c.mu.Lock(); defer c.mu.Unlock(); return c.lists }
	was := lists()
	c.endWatches()
	c.set(zones[0], breakServer(1, v1alpha1.StateMissing))
	shows(0, "Missing")
	if now := lists(); now != was {
		p.Errorf("a watch that broke was followed by %d lists", now-was)
	}

	// An event of type ERROR: 410 means to list again, anything else is reported, too.
	c.expire()
	c.fail(&metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old"})
	c.set(zones[1], breakServer(1, v1alpha1.StateLame))
	shows(1, "Lame")
	if lists() == was {
		p.Error("an expired version was not followed by a list")
	}
	c.fail(&metav1.Status{Code: http.StatusInternalServerError, Message: "store is broken"})
	p.await(`document.getElementById("problem").innerText.includes("store is broken")`)
	p.await(`document.getElementById("connection").dataset.state === "live" && document.getElementById("problem").hidden`)
	c.remove(zones[2])
	p.await("!" + cell("zone-0002.example", ""))

	// What is shown stays while the cluster is away, and the page says how old it is.
	c.refuse(&metav1.Status{Code: http.StatusServiceUnavailable, Message: "no endpoints"})
	p.await(`document.getElementById("connection").dataset.state === "lost" && document.getElementById("problem").innerText.includes("503: no endpoints")`)
	p.await(`/What is shown is of \d\d:\d\d:\d\d/.test(document.getElementById("problem").innerText)`)
	shows(1, "Lame")
	c.set(zones[1], func(o *v1alpha1.SyncStatus) { o.Servers[1].State = v1alpha1.StateInSync })
	c.refuse(nil)
	shows(1, "InSync")
	p.await(`document.getElementById("connection").dataset.state === "live"`)
	p.await(`[...document.querySelectorAll("#timeline li")].some((e) => e.innerText.includes("Lame → InSync"))`)
}

// A watch on which nothing comes, not even a bookmark, is given up. The page waits 90 seconds for that, and here a hundredth.
func testSilence(p *tab) {
	call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `const wait = setTimeout; window.setTimeout = (f, ms) => wait(f, ms === 90000 ? 900 : ms);`,
	})
	c, zones := fleet(1, 2)
	c.setMute(true)
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(state("zone-0000.example", "dns-secondary-0-0") + ` === "InSync"`)
	c.set(zones[0], breakServer(1, v1alpha1.StateMissing))
	p.await(`document.getElementById("problem").innerText.includes("Nothing was received for 90 s.")`)
	c.setMute(false)
	p.await(state("zone-0000.example", "dns-secondary-0-0") + ` === "Missing"`)
	p.await(`document.getElementById("connection").dataset.state === "live"`)
}

// A user without rights sees the cluster's words and what to do, and the page goes on by itself when the rights come.
func testRefusals(p *tab) {
	c, _ := fleet(2, 2)
	words := `syncstatuses.sync.bindy.firestoned.io is forbidden: User "jane" cannot list resource "syncstatuses" in namespace "dns"`
	c.refuse(&metav1.Status{Code: http.StatusForbidden, Message: words})
	p.open(c.serve(p, pluginui.Scope{}))
	p.await(`document.getElementById("problem").innerText.includes(` + quote(words) + `)`)
	p.await(`document.getElementById("problem").innerText.includes("kubectl lockstep ui -n")`)
	p.await(`document.getElementById("connection").innerText === "Refused" && document.getElementById("empty").hidden`)
	c.refuse(nil)
	p.await(cell("zone-0001.example", ""))
	p.await(`document.getElementById("problem").hidden`)
}
