package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockstep-dns/lockstep/test/kube"
)

// chromium is a running browser.
type chromium struct{ ctx context.Context }

// startBrowser starts Debian's chromium with an empty profile, and ends it with the test.
func startBrowser(t *testing.T) *chromium {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: test/setup/install ui", err)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-features", "Translate,OptimizationHints,MediaRouter"), chromedp.WindowSize(1360, 850))
	browser, end := chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("starting chromium: %v", err)
	}
	t.Cleanup(func() {
		_ = chromedp.Cancel(browser)
		end()
		stop()
	})
	return &chromium{browser}
}

// tab is a tab in a profile of its own, without the cookies of others.
type tab struct {
	testing.TB
	ctx context.Context

	mu sync.Mutex
	// requests are the URLs that the tab has asked for, complaints its exceptions and violations of the policy.
	requests, complaints []string
	// codes are those of the answers by the ID of the request, also of answers that the page may not see.
	codes map[string]int64
	urls  map[string]string
}

func newTab(t testing.TB, browser *chromium) *tab {
	t.Helper()
	return listenTo(browser.ctx, t, chromedp.WithNewBrowserContext())
}

// newTabOf returns another tab of the same profile.
func newTabOf(t testing.TB, p *tab) *tab {
	t.Helper()
	return listenTo(p.ctx, t, chromedp.WithExistingBrowserContext(chromedp.FromContext(p.ctx).BrowserContextID))
}

func listenTo(parent context.Context, t testing.TB, option chromedp.ContextOption) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(parent, option)
	p := &tab{TB: t, ctx: ctx, codes: map[string]int64{}, urls: map[string]string{}}
	if err := chromedp.Listen(ctx, p.record); err != nil {
		t.Fatal(err)
	}
	p.command(network.CommandEnable)
	p.command(cdplog.CommandEnable)
	p.command(runtime.CommandEnable)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the page:\n%s\nit asked for %q", p.text("document.body.innerText"), p.seen(&p.requests))
		}
		end()
		for _, c := range p.seen(&p.complaints) {
			t.Errorf("the browser complains: %s", c)
		}
	})
	return p
}

func (p *tab) record(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
		p.urls[string(e.RequestID)] = e.Request.URL
	case *network.EventResponseReceivedExtraInfo:
		p.codes[string(e.RequestID)] = e.StatusCode
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, fmt.Sprintf("%+v", e.ExceptionDetails))
	case *cdplog.EventEntryAdded:
		if e.Entry.Source == cdplog.EntrySourceSecurity || e.Entry.Source == cdplog.EntrySourceJavascript || strings.Contains(e.Entry.Text, "Content Security Policy") {
			p.complaints = append(p.complaints, e.Entry.Text)
		}
	}
}

// seen returns a copy of one of the tab's lists.
func (p *tab) seen(list *[]string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), *list...)
}

// awaitStatus waits until the last request for a URL was answered with a code.
func (p *tab) awaitStatus(url string, code int64) {
	p.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		p.mu.Lock()
		got := int64(0)
		for id, u := range p.urls {
			if u == url {
				got = p.codes[id]
			}
		}
		p.mu.Unlock()
		switch {
		case got == code:
			return
		case time.Since(begun) > kube.Answer.Duration():
			p.Errorf("%s was answered with %d, want %d", url, got, code)
			return
		}
	}
}

// forget drops the complaints so far: a test has made the browser complain.
func (p *tab) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = nil
}

// do runs an action in a tab, and returns its value.
func do[T any](p *tab, action chromedp.Action[T]) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		p.Fatal(err)
	}
	return value
}

// call sends a command of the DevTools protocol, and returns its result.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.Helper()
	return do(p, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) })
}

// command sends a command without parameters.
func (p *tab) command(method string) {
	p.Helper()
	call(p, cdp.Command[cdp.Empty, cdp.Empty]{Method: method}, cdp.Empty{})
}

// open opens a URL, and returns the code of the answer.
func (p *tab) open(url string) int64 {
	p.Helper()
	return do(p, chromedp.NavigateResponse(url)).Status
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	return do(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// eval evaluates an expression for what it does.
func (p *tab) eval(expression string) {
	p.Helper()
	do(p, chromedp.Evaluate[chromedp.Void](expression))
}

func (p *tab) text(expression string) string {
	p.Helper()
	return eval[string](p, expression)
}

func (p *tab) number(expression string) float64 {
	p.Helper()
	return eval[float64](p, expression)
}

// await waits until an expression is true.
func (p *tab) await(expression string) {
	p.Helper()
	p.awaitFor(kube.Answer, expression)
}

func (p *tab) awaitFor(limit kube.Patience, expression string) {
	p.Helper()
	for begun := time.Now(); !eval[bool](p, "Boolean("+expression+")"); {
		if time.Since(begun) > limit.Duration() {
			p.Fatalf("not within %s: %s", limit, expression)
		}
		time.Sleep(20 * time.Millisecond) // between two looks at the page
	}
}

// press presses keys.
func (p *tab) press(pressed ...string) {
	p.Helper()
	for _, k := range pressed {
		do(p, chromedp.KeyEvent(k))
	}
}

// keys are those that the page knows.
var keys = struct{ up, down, left, right, pageDown, home, end, enter, escape, tab string }{
	kb.ArrowUp, kb.ArrowDown, kb.ArrowLeft, kb.ArrowRight, kb.PageDown, kb.Home, kb.End, kb.Enter, kb.Escape, kb.Tab,
}

// click clicks with the mouse on what an expression returns, when it is there.
func (p *tab) click(expression string) {
	p.Helper()
	p.await(expression)
	at := eval[struct{ X, Y float64 }](p, `(() => { const r = (`+expression+`).getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`)
	do(p, chromedp.MouseClickXY(at.X, at.Y))
}

// resize sets the size of the window.
func (p *tab) resize(width, height int64) {
	p.Helper()
	do(p, chromedp.EmulateViewport(width, height))
}

// prefer sets light or dark.
func (p *tab) prefer(scheme string) {
	p.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// quote returns a text as a literal of JavaScript.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // A string can always be encoded.
	}
	return string(b)
}

// cell returns an expression for the cell of a row, which is named by the title at its head, and a server; "" means the head.
func cell(title, server string) string {
	prefix := quote(server + ": ")
	if server == "" {
		prefix = quote(title + ", ")
	}
	return fmt.Sprintf(`[...document.querySelectorAll(".body > .row:not(.servers)")].filter((r) => r.querySelector(".name .word").textContent === %s)
		.flatMap((r) => [...r.children]).find((c) => c.ariaLabel?.startsWith(%s))`, quote(title), prefix)
}

// state returns an expression for what a cell shows.
func state(title, server string) string { return "(" + cell(title, server) + ")?.dataset.state" }
