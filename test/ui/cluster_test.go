package ui

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dns/lockstep/pkg/apis/bindy/v1beta1"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
	"github.com/lockstep-dns/lockstep/pkg/fleet/named"
	"github.com/lockstep-dns/lockstep/test/kube"
)

var updateScreenshots = flag.Bool("update-screenshots", false, "write the screenshots of the documentation, docs/images/ui-*.png")

const (
	// maxScreenshot is the size of a screenshot in bytes.
	maxScreenshot = 200 << 10
)

// installed is a namespace with the objects of testdata/fleet.yaml, on a real cluster.
type installed struct {
	*testing.T
	client    client.Client
	namespace string
	plugin    string
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	f := &installed{T: t, client: kube.Client(t), namespace: kube.Namespace(t, "dns"), plugin: kube.Program(t, "bin/kubectl-lockstep")}
	f.kubectl("apply", "-f", "test/ui/testdata/fleet.yaml")
	kube.WaitReady(t, f.client, f.namespace, kube.Start, "bind9cluster/dns", "dnszone/example-com", "dnszone/example-net", "dnszone/corp", "dnszone/reverse-192-0-2", "dnszone/shop")
	return f
}

func (f *installed) kubectl(args ...string) string {
	f.Helper()
	return kube.Kubectl(f, "", append([]string{"-n", f.namespace}, args...)...)
}

// start runs `kubectl lockstep ui` as a user does, until the test ends, and returns the URL that it prints.
func (f *installed) start(kubeconfig string) string {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, f.plugin, "ui", "--no-browser", "-n", f.namespace)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	f.Cleanup(func() {
		cancel()
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 || stderr.Len() > 0 {
			f.Errorf("interrupted, kubectl lockstep ui ends with %v and %q", err, stderr.String())
		}
	})
	m := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+`).FindString(line)
	if m == "" {
		f.Fatalf("kubectl lockstep ui printed %q", line)
	}
	return m
}

// TestClusterPage follows a real cluster on the page: all in sync, a server that stops and comes back, data that somebody changed, who may
// not read, and who else may not.
func TestClusterPage(t *testing.T) {
	kube.Isolated(t)
	browser := startBrowser(t)
	f := newInstalled(t)
	url := f.start(os.Getenv("KUBECONFIG"))
	base := url[:strings.Index(url, "?")]
	p := newTab(t, browser)
	p.resize(1280, 640)
	if code := p.open(url); code != http.StatusOK {
		t.Fatalf("the page is answered with %d", code)
	}
	f.checkInSync(p)
	f.checkSession(p, browser, url, base)
	f.checkStoppedServer(p)
	f.checkWrongData(p)
	f.checkRecovery(p)
	for _, r := range p.seen(&p.requests) {
		if !strings.HasPrefix(r, base) {
			t.Errorf("the page asked for %s", r)
		}
	}
	f.checkForbidden(newTab(t, browser))
}

// objects are the zones of testdata/fleet.yaml, servers their servers.
var (
	zones   = []string{"2.0.192.in-addr.arpa", "corp.example", "example.com", "example.net", "shop.example"}
	servers = []string{"dns-primary-0-0", "dns-secondary-0-0", "dns-secondary-1-0"}
)

func (f *installed) checkInSync(p *tab) {
	f.Helper()
	for _, zone := range zones {
		for _, server := range servers {
			p.awaitFor(kube.Settle, state(zone, server)+` === "InSync"`)
		}
	}
	p.await(`document.getElementById("count").textContent === "5 zones, all in sync"`)
	p.await(`document.getElementById("connection").dataset.state === "live"`)
}

// checkSession: the token works once and does not stay; other browsers and other sites get nothing.
func (f *installed) checkSession(p *tab, browser *chromium, url, base string) {
	f.Helper()
	if got := p.text(`location.href`); got != base {
		f.Errorf("the address is %s, want %s", got, base)
	}
	if got := p.text(`document.cookie`); got != "" {
		f.Errorf("scripts see the cookie %s", got)
	}
	stranger := newTab(f, browser)
	for _, target := range []string{url, base, base + "app.js", base + "apis/sync.bindy.firestoned.io/v1alpha1/syncstatuses"} {
		if code := stranger.open(target); code != http.StatusUnauthorized {
			f.Errorf("another browser gets %d for %s", code, target)
		}
	}
	// Another site, opened in the browser that has the cookie. All of 127.0.0.1 is one site to cookies.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<title>other</title>") }))
	defer other.Close()
	guest := newTabOf(f, p)
	guest.open(other.URL)
	for _, target := range []string{base + "scope", base + "apis/sync.bindy.firestoned.io/v1alpha1/syncstatuses"} {
		p.Log(eval[string](guest, `fetch(`+quote(target)+`, { mode: "no-cors", credentials: "include" }).then(() => "taken", (e) => e.name)`))
		guest.awaitStatus(target, http.StatusForbidden)
	}
	guest.forget()
}

// checkStoppedServer: a server that is stopped turns its cells, and only them, and turns them back when it is there again.
func (f *installed) checkStoppedServer(p *tab) {
	f.Helper()
	const stopped = "dns-secondary-1-0"
	f.kubectl("create", "quota", "none", "--hard=pods=0") // No new pod.
	f.kubectl("delete", "pod", stopped, "--grace-period=1", "--wait=false")
	began := time.Now()
	for _, zone := range zones {
		p.awaitFor(kube.Settle, state(zone, stopped)+` === "Unreachable"`)
	}
	f.Logf("all cells of the stopped server have turned %s after it was stopped", time.Since(began).Round(100*time.Millisecond))
	for _, server := range servers[:2] {
		p.await(state("shop.example", server) + ` === "InSync"`)
	}
	p.await(`document.getElementById("timeline").innerText.includes("dns-secondary-1-0 InSync → Unreachable")`)
	p.click(cell("shop.example", stopped))
	p.awaitFor(kube.Settle, `document.getElementById("detail").innerText.includes("does not exist")`)
	// The fleet manager's words come from the events of the server's instance.
	p.awaitFor(kube.Settle, `/ServerLost|NotReady/.test(document.getElementById("detail").innerText)`)
	text := p.text(`document.getElementById("detail").innerText`)
	for _, want := range []string{"on " + stopped, "Unreachable", "\nSince\n", "\nExplanation\n"} {
		if !strings.Contains(text, want) {
			f.Errorf("the panel lacks %q:\n%s", want, text)
		}
	}
	f.screenshot(p, "zones")
	p.press(keys.escape)
	p.click(`document.getElementById("only")`)
	p.await(`document.querySelectorAll(".body > .row").length === 5`)
	p.click(`document.getElementById("only")`)
}

// checkWrongData: what somebody changed on the servers is beside what is declared.
func (f *installed) checkWrongData(p *tab) {
	f.Helper()
	f.kubectl("annotate", "dnszone/shop", v1beta1.PausedAnnotation+"=true")
	kube.Eventually(f, kube.Settle, func(context.Context) error {
		if out := f.kubectl("get", "dnszone/shop", "-o", "jsonpath={.status.conditions}"); !strings.Contains(strings.ToLower(out), "paused") {
			return fmt.Errorf("not paused: %s", out)
		}
		return nil
	})
	f.updateByHand("dns-primary-0-0", "shop.example", "www.shop.example. 60 A 203.0.113.9")
	p.click(cell("shop.example", ""))
	p.await(`document.getElementById("heading").textContent === "shop.example"`)
	p.awaitFor(kube.Settle, state("www A", "dns-primary-0-0")+` === "Divergent"`)
	p.awaitFor(kube.Settle, state("www A", "dns-secondary-0-0")+` === "Divergent"`)
	for _, row := range []string{"www AAAA", "cart CNAME", "@ MX", "@ TXT"} {
		p.await(state(row, "dns-primary-0-0") + ` === "InSync"`)
	}
	p.click(cell("www A", "dns-primary-0-0"))
	p.awaitFor(kube.Settle, `document.querySelector("#detail .differs")?.innerText.includes("203.0.113.9")`)
	p.await(`document.querySelectorAll("#detail .events li").length > 0`)
	text := p.text(`document.getElementById("detail").innerText`)
	for _, want := range []string{"ARecord " + f.namespace + "/www on dns-primary-0-0", "www.shop.example. A", "192.0.2.1", "192.0.2.2", "NOERROR, authoritative", "RecordProgrammed"} {
		if !strings.Contains(text, want) {
			f.Errorf("the panel lacks %q:\n%s", want, text)
		}
	}
	for _, name := range []string{"Since", "Serial", "Lag", "Explanation", "Address", "Round trip"} {
		if !strings.Contains(text, name+"\n") {
			f.Errorf("the panel has no %s:\n%s", name, text)
		}
	}
	f.screenshot(p, "detail")
	p.prefer("dark")
	f.screenshot(p, "dark")
	p.prefer("light")
	p.press(keys.escape)
	f.screenshot(p, "zone")
	p.press(keys.escape)
	p.await(`document.getElementById("heading").textContent === "Zones"`)
	p.resize(390, 720)
	p.await(cell("shop.example", "dns-primary-0-0"))
	f.screenshot(p, "narrow")
	p.resize(1280, 640)
}

// checkRecovery: the server comes back, the controller corrects the data, and the cells turn back.
func (f *installed) checkRecovery(p *tab) {
	f.Helper()
	f.kubectl("annotate", "dnszone/shop", v1beta1.PausedAnnotation+"-")
	f.kubectl("delete", "quota", "none")
	// Kubernetes waits longer after each pod that it could not make. A change of the StatefulSet has it try at once.
	f.kubectl("annotate", "statefulset/dns-secondary-1", "test/try=again")
	began := time.Now()
	f.checkInSync(p)
	f.Logf("all cells have turned back %s after the server could start again", time.Since(began).Round(100*time.Millisecond))
	p.await(`document.getElementById("timeline").innerText.includes("→ InSync")`)
}

// checkForbidden: who may not read sees the cluster's words, and the zones as soon as the right is there.
func (f *installed) checkForbidden(p *tab) {
	f.Helper()
	p.open(f.start(f.kubeconfigOf("stranger")))
	p.await(`document.getElementById("connection").innerText === "Refused"`)
	words := fmt.Sprintf(`User "system:serviceaccount:%s:stranger" cannot list resource "syncstatuses" in API group "sync.bindy.firestoned.io" in the namespace "%s"`, f.namespace, f.namespace)
	p.await(`document.getElementById("problem").innerText.includes(` + quote(words) + `)`)
	p.await(`!document.querySelector(".body > .row")`)
	f.kubectl("create", "rolebinding", "stranger", "--clusterrole=view", "--serviceaccount="+f.namespace+":stranger")
	p.awaitFor(kube.Settle, state("shop.example", "dns-primary-0-0")+` === "InSync"`)
	p.await(`document.getElementById("problem").hidden`)
}

// kubeconfigOf returns the path of a kubeconfig for a new ServiceAccount without rights.
func (f *installed) kubeconfigOf(account string) string {
	f.Helper()
	f.kubectl("create", "serviceaccount", account)
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		f.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	config.AuthInfos = map[string]*api.AuthInfo{account: {Token: strings.TrimSpace(f.kubectl("create", "token", account))}}
	current.AuthInfo = account
	path := filepath.Join(f.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		f.Fatal(err)
	}
	return path
}

// updateByHand adds a record to a zone behind the controller's back.
func (f *installed) updateByHand(pod, zone, record string) {
	f.Helper()
	rr, err := dns.NewRR(record)
	if err != nil {
		f.Fatal(err)
	}
	kube.Eventually(f, kube.Settle, func(ctx context.Context) error {
		var secret corev1.Secret
		if err := f.client.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: named.KeyringSecretName("dns", named.KeyUpdate)}, &secret); err != nil {
			return err
		}
		key, err := named.KeyFromSecret(&secret)
		if err != nil {
			return err
		}
		addresses, err := kube.Servers(ctx, f.client, f.namespace)
		if err != nil {
			return err
		}
		address, err := netip.ParseAddrPort(addresses[pod])
		if err != nil {
			return err
		}
		conn, err := wire.Dial(ctx, address, key)
		if err != nil {
			return err
		}
		defer conn.Close()
		m := new(dns.Msg)
		m.SetUpdate(dns.Fqdn(zone))
		m.Insert([]dns.RR{rr})
		reply, err := conn.Exchange(ctx, m)
		if err == nil && reply.Rcode != dns.RcodeSuccess {
			err = fmt.Errorf("answered %s", dns.RcodeToString[reply.Rcode])
		}
		return err
	})
}

// screenshot writes docs/images/ui-NAME.png with -update-screenshots.
func (f *installed) screenshot(p *tab, name string) {
	f.Helper()
	if !*updateScreenshots {
		return
	}
	image := do(p, chromedp.CaptureScreenshot())
	if len(image) > maxScreenshot {
		f.Errorf("the screenshot %s has %d bytes, more than %d", name, len(image), maxScreenshot)
	}
	dir := filepath.Join(kube.Root(f), "docs", "images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ui-"+name+".png"), image, 0o644); err != nil {
		f.Fatal(err)
	}
}
