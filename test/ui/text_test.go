package ui

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dns/lockstep/pkg/apis/sync/v1alpha1"
	pluginui "github.com/lockstep-dns/lockstep/pkg/plugin/ui"
)

// hostile is what no text of the cluster may do.
const hostile = `"><img src=x onerror="window.hostile=1"><script>window.hostile=1</script><svg onload="window.hostile=1"><a href="javascript:window.hostile=1">` + "\u202e"

// Whatever is in a string, it is shown as text.
func testHostileText(p *tab) {
	c := newReplay()
	o := newZone("dns", "a.example", 1, 1)
	o.Zone, o.Labels = "h.example"+hostile, map[string]string{"a": hostile}
	for i := range o.Servers {
		s := &o.Servers[i]
		s.Instance, s.Pod, s.Role, s.Address, s.Message = "p"+hostile, fmt.Sprint("pod", i, hostile), hostile, hostile, hostile
		s.State, s.Rcode, s.ShadowedBy, s.ReadBy, s.PodPhase = v1alpha1.ServerState(hostile), hostile, hostile, hostile, hostile
		s.Observed = []v1alpha1.RRset{{Name: hostile, Type: hostile, Rdata: []string{hostile}}}
	}
	o.Servers[1].State = "constructor"
	o.RRsets = []v1alpha1.RRset{{Name: "declared" + hostile, Type: hostile, Rdata: []string{hostile}}}
	o.Status = v1alpha1.SyncStatusStatus{Phase: v1alpha1.Phase(hostile), FailureReason: hostile, FailureMessage: hostile,
		Conditions: []metav1.Condition{{Type: hostile, Status: "False", Reason: hostile, Message: hostile}}}
	o.NameServers = []v1alpha1.NameServer{{Name: hostile, LeadsTo: hostile, Message: hostile}}
	c.set(o, nil)
	c.events = append(c.events, newEvent("DNSZone", "a-example", hostile, hostile, hostile))
	url := c.serve(p, pluginui.Scope{Namespace: "dns", Selector: hostile})
	p.open(url)
	p.await(`document.querySelector(".body .row .cell")`)
	if wide := p.number(`document.getElementById("viewport").scrollWidth - document.getElementById("viewport").clientWidth`); wide > 0 {
		p.Errorf("texts make the table %g wider", wide)
	}
	p.click(`document.querySelectorAll(".body .row .cell")[1]`)
	p.await(`document.querySelector("#detail .events li")`)
	p.await(`document.getElementById("detail-body").innerText.includes("<script>window.hostile=1</script>")`)
	p.press(keys.escape)
	p.click(`document.querySelector(".body .row .name")`)
	p.await(`document.getElementById("heading").textContent.includes("onerror")`)
	p.await(`document.querySelector(".body .row .name")`)
	p.click(`document.querySelector(".body .row .name")`)
	p.await(`document.querySelector("#detail .events li")`)
	c.set(o, func(o *v1alpha1.SyncStatus) { o.Servers[0].State = "x" + hostile })
	p.await(`document.querySelector("#timeline li")?.innerText.includes("onerror")`)
	c.refuse(&metav1.Status{Code: http.StatusForbidden, Message: hostile})
	p.await(`document.getElementById("problem").innerText.includes("onerror")`)
	if found := p.number(`document.querySelectorAll("img, svg, a, iframe, script:not([src='/app.js'])").length`); found > 0 {
		p.Errorf("%g elements came from texts", found)
	}
	if eval[bool](p, `"hostile" in window`) {
		p.Error("a text was run")
	}
	// The browser itself would refuse markup, if the page made any.
	if got := p.text(`(() => { try { document.body.innerHTML = "<p>"; return "taken"; } catch (e) { return e.name; } })()`); got != "TypeError" {
		p.Errorf("markup in a text: %s", got)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if !strings.HasPrefix(r, url[:strings.Index(url, "/?")]+"/") {
			p.Errorf("the page asked for %s", r)
		}
	}
	// The assignment above.
	p.complaints = slices.DeleteFunc(p.complaints, func(c string) bool { return strings.Contains(c, "TrustedHTML") })
}

// The panel of a cell has what is declared and served, the server's words, serial and lag, since when, and the events.
func testDetail(p *tab) {
	c, zones := fleet(1, 3)
	www := newRecord(zones[0], "www", "192.0.2.1")
	began := metav1.NewMicroTime(time.Now().Add(-200 * time.Second))
	c.set(www, breakServer(2, v1alpha1.StateStale, func(s *v1alpha1.ServerStatus) {
		s.Message, s.SerialLag, s.BehindSince = "the zone has serial 1795230635", new(int64(4)), &began
		s.ObservedAt = &metav1.MicroTime{Time: began.Add(125 * time.Second)}
		s.Observed = []v1alpha1.RRset{{Name: "www.zone-0000.example.", Type: "A", TTL: new(int64(60)), Rdata: []string{"203.0.113.9"}}}
	}))
	c.events = append(c.events, newEvent("ARecord", "www", "Normal", "Programmed", "on 1 of 1 primaries"),
		newEvent("Bind9Instance", "dns-secondary-1", "Warning", "PodsCrashing", "exit code 1"), newEvent("ARecord", "mail", "Normal", "Other", "of another object"))
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(cell("zone-0000.example", ""))
	p.click(cell("zone-0000.example", ""))
	p.await(state("www A", "dns-secondary-1-0") + ` === "Stale"`)
	p.await(`(` + cell("www A", "dns-secondary-1-0") + `).innerText.includes("Stale −4")`)
	p.click(cell("www A", "dns-secondary-1-0"))
	p.await(`document.querySelectorAll("#detail .events li").length === 2`)
	text := p.text(`document.getElementById("detail").innerText`)
	for _, want := range []string{"ARecord dns/www on dns-secondary-1-0", "the zone has serial 1795230635", "1795230639", "4 serials behind", "for 2 min 5 s",
		"NOERROR, authoritative", "www.zone-0000.example. A", "300 192.0.2.1", "≠ 60 203.0.113.9", "Programmed ×2", "Warning PodsCrashing", "Bind9Instance dns-secondary-1"} {
		if !strings.Contains(text, want) {
			p.Errorf("the panel lacks %q:\n%s", want, text)
		}
	}
	// It follows the watch, and fresh times that no watch reports.
	c.set(www, func(o *v1alpha1.SyncStatus) {
		o.Servers[2].State, o.Servers[2].Observed, o.Servers[2].Message = v1alpha1.StateInSync, nil, ""
	})
	p.await(`document.getElementById("detail").dataset.state === "InSync" && !document.querySelector("#detail .differs")`)
	c.mu.Lock()
	stored := c.objects["dns/arecord.www"].DeepCopy()
	stored.Servers[2].Serial = new(int64(42))
	stored.ObservedAt = &metav1.MicroTime{Time: time.Now().Add(time.Hour)}
	c.objects["dns/arecord.www"] = stored
	c.mu.Unlock()
	p.await(`document.getElementById("detail").innerText.includes("Serial\n42")`)
	p.await(`/clock seems to be (59 min \d+ s|1 h 0 min) behind the cluster's/.test(document.getElementById("detail-problem").innerText)`)
	c.remove(www)
	p.await(`document.getElementById("detail-problem").innerText === "The object is no more."`)
}

// The timeline has what changed, joins what changes at once, forgets the oldest, and opens what an entry is about.
func testTimeline(p *tab) {
	c, zones := fleet(20, 2)
	p.open(c.serve(p, pluginui.Scope{Namespace: "dns"}))
	p.await(`document.getElementById("connection").dataset.state === "live"`)
	p.await(`document.getElementById("changes").innerText.includes("None so far.")`)
	for _, z := range zones {
		c.set(z, breakServer(1, v1alpha1.StateRefused))
	}
	p.await(`[...document.querySelectorAll("#timeline li")].length === 1 && document.getElementById("timeline").innerText.includes("dns-secondary-0-0 InSync → Refused")`)
	p.await(`document.getElementById("timeline").innerText.includes("20 zones: zone-0000.example, zone-0001.example, zone-0002.example, …")`)
	p.await(`document.getElementById("spoken").innerText.includes("dns-secondary-0-0 InSync → Refused: 20 zones")`)
	p.click(`document.querySelector("#timeline button")`)
	p.await(`document.getElementById("detail-on").innerText.endsWith("on dns-secondary-0-0")`)
	for i := range 300 {
		c.set(zones[0], func(o *v1alpha1.SyncStatus) { o.Servers[0].State = v1alpha1.ServerState(fmt.Sprint("State", i)) })
	}
	p.await(`document.getElementById("timeline").innerText.includes("State298 → State299")`)
	if n := p.number(`document.querySelectorAll("#timeline li").length`); n != 200 {
		p.Errorf("%g entries", n)
	}
}
