package offline

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dns/lockstep/webhook/review/trap"
)

const good = `
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: dns}
spec: {}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: z}
spec:
  zoneName: example.com
  clusterRef: dns
  soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}
  recordsFrom: [{selector: {matchLabels: {zone: z}}}]
---
apiVersion: bindy.firestoned.io/v1beta1
kind: CNAMERecord
metadata: {name: blog, labels: {zone: z}}
spec: {name: blog, target: www}
`

// conflict cannot be beside good, doubt can.
const (
	// doubts are warned of, each at its line: that of the field.
	doubts = `
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: q}
spec:
  zoneName: example.net
  soaRecord: {primaryNs: ns1.example.net., adminEmail: a@example.com}
  clusterRef: nodns
  providerRefs:
  - name: nobody
  bind9InstancesFrom:
  - selector: {matchLabels: {app: none}}
  nameServers:
  - {hostname: ns2.example.net., ipv4Address: 192.0.2.1}
  - {hostname: ns3.example.net., ipv4Address: 192.0.2.1}
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: e}
spec:
  endpoints:
  - dnsName: a.example.net
    recordType: CNAME
    targets: [cdn.example.org]
  - dnsName: a.example.org
    recordType: A
    targets: [192.0.2.1]
  - dnsName: b.example.net
    recordType: BLOB
    targets: [x]
  - dnsName: a.example.net
    recordType: A
    targets: [192.0.2.1]
---
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata:
  name: lost
  labels: {zone: x}
spec: {name: lost, ipv4Addresses: [192.0.2.1]}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSProvider
metadata: {name: corp}
spec:
  rfc2136:
    primaries: [{address: 192.0.2.1}, {address: 192.0.2.1}]
    updateKey: {secretRef: {name: k}}
`
	conflict = `
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: blog, labels: {zone: z}}
spec:
  name: blog
  ipv4Addresses: [192.0.2.1]
`
	doubt = `
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: lost}
spec: {name: lost, ipv4Addresses: [192.0.2.1]}
`
	// reverse has names of addresses, and others in the same zones.
	reverse = `
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: four}
spec:
  zoneName: 2.0.192.in-addr.arpa
  clusterRef: dns
  soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}
  recordsFrom: [{selector: {matchLabels: {zone: four}}}]
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSZone
metadata: {name: six}
spec:
  zoneName: 8.b.d.0.1.0.0.2.ip6.arpa
  clusterRef: dns
  soaRecord: {primaryNs: ns1.example.com., adminEmail: a@example.com}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: PTRRecord
metadata: {name: good, labels: {zone: four}}
spec: {name: "10", target: a.example.com.}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: PTRRecord
metadata: {name: whole, labels: {zone: four}}
spec: {name: "192.0.2.11", target: b.example.com.}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: PTRRecord
metadata: {name: over, labels: {zone: four}}
spec: {name: "256", target: c.example.com.}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: PTRRecord
metadata: {name: classless, labels: {zone: four}}
spec: {name: "12.0/29", target: d.example.com.}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: another, labels: {zone: four}}
spec: {name: "192.0.2.12", ipv4Addresses: [192.0.2.12]}
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: by-endpoint}
spec:
  endpoints:
  - {dnsName: 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa, recordType: PTR, targets: [a.example.com]}
  - {dnsName: 0001.0.0.8.b.d.0.1.0.0.2.ip6.arpa, recordType: PTR, targets: [a.example.com]}
  - {dnsName: _b._dns-sd._udp.8.b.d.0.1.0.0.2.ip6.arpa, recordType: PTR, targets: [a.example.com]}
`
	// policies are several of one name, in objects of three kinds.
	policies = `
apiVersion: bindy.firestoned.io/v1beta1
kind: TXTRecord
metadata: {name: spf, labels: {zone: z}}
spec: {name: "@", text: ["v=spf1 mx -all"]}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: TXTRecord
metadata: {name: spf-2, labels: {zone: z}}
spec:
  name: "@"
  text: ["V=SPF1 ", "include:_spf.example.net -all"]
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: by-endpoint}
spec:
  endpoints:
  - {dnsName: _dmarc.example.com, recordType: TXT, targets: [v=DMARC1; p=none, v=DMARC1; p=reject]}
  - {dnsName: example.com, recordType: TXT, targets: [v=spf1 mx -all, v=spf10, "v=STSv1; id=1"]}
  - {dnsName: other.example.com, recordType: TXT, targets: [v=spf1 -all, v=DMARC1]}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSRecord
metadata: {name: by-record, labels: {zone: z}}
spec: {name: www, type: TXT, data: ['"v=spf1 -all"']}
`
	traps = `
apiVersion: bindy.firestoned.io/v1beta1
kind: TXTRecord
metadata: {name: spf, labels: {zone: z}}
spec: {name: "@", text: ['"v=spf1 mx -all"']}
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: apex}
spec:
  endpoints:
  - {dnsName: example.com, recordType: TXT, targets: ['"v=spf1 mx -all" "site-verification=abc"']}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: CNAMERecord
metadata: {name: cdn, labels: {zone: z}}
spec:
  name: cdn
  target: cdn.example.net
`
	// hosts are named by records of their zone, which lead nowhere, and by others, which do not.
	hosts = `
apiVersion: bindy.firestoned.io/v1beta1
kind: NSRecord
metadata: {name: glueless, labels: {zone: z}}
spec: {name: sub, nameserver: ns.sub}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: NSRecord
metadata: {name: nowhere, labels: {zone: z}}
spec: {name: lab, nameserver: ns9}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: DNSRecord
metadata: {name: several, labels: {zone: z}}
spec: {name: dept, type: NS, data: [ns1, ns.lab, ns.dept, ns.elsewhere.test., ns2]}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: ARecord
metadata: {name: glue, labels: {zone: z}}
spec: {name: ns.dept, ipv4Addresses: [192.0.2.1]}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: MXRecord
metadata: {name: mx, labels: {zone: z}}
spec: {name: "@", priority: 10, mailServer: blog}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: SRVRecord
metadata: {name: sip, labels: {zone: z}}
spec: {name: _sip._tcp, priority: 1, weight: 1, port: 5060, target: blog}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: MXRecord
metadata: {name: none, labels: {zone: z}}
spec: {name: nomail, priority: 10, mailServer: mail}
---
apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: {name: by-endpoint}
spec:
  endpoints:
  - {dnsName: ns2.example.com, recordType: A, targets: [192.0.2.2]}
  - {dnsName: e.example.com, recordType: NS, targets: [blog.example.com, ns.e.example.com, ns7.example.com]}
  - {dnsName: e.example.org, recordType: NS, targets: [ns.e.example.org]}
`
)

// servers has settings of servers of which none can be made.
const servers = `
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Cluster
metadata: {name: dns}
spec:
  version: "9.16"
  acls:
    inside: [192.0.2.0/24]
    any: [192.0.2.1]
  global:
    allowTransfer: [192.0.2.0/33]
    allowQuery: [inside, insid]
    bindcarConfig:
      port: 5353
      serviceSpec:
        sessionAffinity: ClientIp
  service:
    spec:
      type: LoadBalancerr
      loadBalancerSourceRanges: [192.0.2.0]
  volumeMounts: [{name: data, mountPath: /srv}]
  secondary:
    allowTransfer:
    - none
    - 192.0.2.0/34
---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Instance
metadata: {name: member}
spec:
  role: primary
  version: "9.18"
  clusterRef: dns
  config:
    listenOn: [inside, outside]
    bindcarConfig: {serviceSpec: {type: Node}}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Instance
metadata: {name: alone}
spec:
  role: primary
  service: {spec: {ipFamilies: [IPv4, IPv5], externalIPs: [192.0.2]}}
  storage: {emptyDir: {}}
  volumes: [{name: cache, emptyDir: {}}]
---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9Instance
metadata: {name: of-another}
spec: {role: primary, clusterRef: another, config: {allowQuery: [its-own]}}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: Bind9GlobalCluster
metadata: {name: shared}
spec:
  namespace: default
  global:
    dnssec:
      signing: {enabled: true, kskLifetime: 2d}
---
apiVersion: bindy.firestoned.io/v1beta1
kind: ClusterBind9Provider
metadata: {name: provider}
spec:
  image: {image: "registry.example.com/bind9:9.16"}
  version: "9.16"
  primary:
    service: {spec: {externalTrafficPolicy: Locl, internalTrafficPolicy: Cluster, ipFamilyPolicy: Dual}}
`

func TestRun(t *testing.T) {
	tests := map[string]struct {
		manifests map[string]string
		against   string
		strict    bool
		refused   bool
		want      []string // lines of the report, without the folder
	}{
		"good":             {manifests: map[string]string{"all.yaml": good}},
		"conflict":         {manifests: map[string]string{"all.yaml": good + "---" + conflict}, refused: true, want: []string{"all.yaml:25: error: ARecord default/blog: spec.name: Invalid value: blog.example.com. is an alias, declared by CNAMERecord default/blog, which is older"}},
		"across files":     {manifests: map[string]string{"a.yaml": conflict, "b.yaml": good}, refused: true, want: []string{"b.yaml:19: error: CNAMERecord default/blog: spec.name: Invalid value: blog.example.com. already has A data, declared by ARecord default/blog"}},
		"in doubt":         {manifests: map[string]string{"all.yaml": good + "---" + doubt}, want: []string{"all.yaml:23: warning: ARecord default/lost: metadata.labels: no DNSZone in namespace default selects"}},
		"in doubt, strict": {manifests: map[string]string{"all.yaml": good + "---" + doubt}, strict: true, refused: true, want: []string{"warning"}},
		"traps":            {manifests: map[string]string{"all.yaml": good + "---" + traps}, want: []string{"all.yaml:24: warning: TXTRecord default/spf: spec.text: the quotes become part of the value", `all.yaml:31: warning: DNSEndpoint default/apex: spec.endpoints[0].targets: "site-verification=abc" begins like`, "all.yaml:38: warning: CNAMERecord default/cdn: spec.target \"cdn.example.net\" has no final dot"}},
		"traps, strict":    {manifests: map[string]string{"all.yaml": good + "---" + strings.Split(traps, "---")[0]}, strict: true, refused: true, want: []string{"[quotes]"}},
		"hosts of the zone": {manifests: map[string]string{"all.yaml": good + "---" + hosts}, want: []string{
			"all.yaml:24: warning: NSRecord default/glueless: spec.nameserver: ns.sub.example.com. is inside what it serves and has no address here",
			"all.yaml:29: warning: NSRecord default/nowhere: spec.nameserver: ns9.example.com. has no address in this zone",
			"all.yaml:44: warning: MXRecord default/mx: spec.mailServer: blog.example.com. is an alias, and MX records must name the host itself (RFC 2181 section 10.3) [alias-target]",
			"all.yaml:49: warning: SRVRecord default/sip: spec.target: blog.example.com. is an alias, and SRV records",
			"all.yaml:62: warning: DNSEndpoint default/by-endpoint: spec.endpoints[1].targets: blog.example.com. is an alias",
			"all.yaml:62: warning: DNSEndpoint default/by-endpoint: spec.endpoints[1].targets: ns.e.example.com. is inside",
			"all.yaml:63: warning: DNSEndpoint default/by-endpoint: spec.endpoints[2].dnsName: no DNSZone takes",
		}},
		"hosts of the zone, strict": {manifests: map[string]string{"all.yaml": good + "---" + strings.Split(hosts, "---")[0]}, strict: true, refused: true, want: []string{"[missing-glue]"}},
		"names of addresses": {manifests: map[string]string{"all.yaml": good + "---" + reverse}, want: []string{
			"all.yaml:46: warning: PTRRecord default/whole: spec.name: 192.0.2.11.2.0.192.in-addr.arpa. stands for no address",
			"all.yaml:51: warning: PTRRecord default/over: spec.name: 256.2.0.192.in-addr.arpa. stands for no address",
			"all.yaml:69: warning: DNSEndpoint default/by-endpoint: spec.endpoints[1].dnsName: 0001.0.0.8.b.d.0.1.0.0.2.ip6.arpa. stands for no address",
		}},
		"several policies": {manifests: map[string]string{"all.yaml": good + "---" + policies}, want: []string{
			"all.yaml:24: warning: TXTRecord default/spf: spec.text: example.com. has several TXT records that begin with v=spf1, and readers take none of them then; write them as one [several-policies]",
			"all.yaml:31: warning: TXTRecord default/spf-2: spec.text: ",
			"all.yaml:38: warning: DNSEndpoint default/by-endpoint: spec.endpoints[0].targets: _dmarc.example.com. has several TXT records that begin with v=dmarc1",
			"all.yaml:39: warning: DNSEndpoint default/by-endpoint: spec.endpoints[1].targets: example.com. has several",
		}},
		"hosts that come later": {manifests: map[string]string{"a.yaml": strings.Split(hosts, "---")[0], "b.yaml": good, "c.yaml": strings.Replace(conflict, "name: blog", "name: ns.sub", 2)}},
		"own name servers on others' servers": {manifests: map[string]string{"all.yaml": strings.Replace(good, "clusterRef: dns", "providerRefs: [{name: corp}]", 1) + "---" + hosts}, want: []string{
			"all.yaml:12: warning: DNSZone default/z: spec.providerRefs", "[missing-glue]", "[missing-glue]", "DNSRecord default/several: spec.data: ns1.example.com. has no address in this zone", "[alias-target]", "[alias-target]", "[alias-target]", "[missing-glue]", "no DNSZone takes",
		}},
		"in doubt, by line": {manifests: map[string]string{"all.yaml": doubts}, want: []string{
			"all.yaml:8: warning: DNSZone default/q: spec.clusterRef: there is no Bind9Cluster nodns", "all.yaml:9: warning: DNSZone default/q: spec.providerRefs: there is no DNSProvider nobody",
			"all.yaml:12: warning: DNSZone default/q: spec.bind9InstancesFrom[0].selector: selects no Bind9Instance", "all.yaml:13: warning: DNSZone default/q: spec.nameServers: ns2.example.net. and ns3.example.net. have one address",
			"all.yaml:25: warning: DNSEndpoint default/e: spec.endpoints[1].dnsName: no DNSZone takes", `all.yaml:29: warning: DNSEndpoint default/e: spec.endpoints[2].recordType: Lockstep does not publish type "BLOB"`,
			"all.yaml:31: warning: DNSEndpoint default/e: spec.endpoints[3]: it is not published beside spec.endpoints[0]: a name with a CNAME",
			"all.yaml:39: warning: ARecord default/lost: metadata.labels: no DNSZone", "all.yaml:45: warning: DNSProvider default/corp: spec: the server 192.0.2.1:53 is there twice",
		}},
		"servers that cannot be made": {manifests: map[string]string{"all.yaml": servers}, want: []string{
			"all.yaml:6: warning: Bind9Cluster default/dns: spec.version: Lockstep has images of BIND 9.18 and 9.20",
			`all.yaml:9: warning: Bind9Cluster default/dns: spec.acls[any]: "any" is not a name`,
			`all.yaml:11: warning: Bind9Cluster default/dns: spec.global.allowTransfer[0]: "192.0.2.0/33" is neither`,
			`all.yaml:12: warning: Bind9Cluster default/dns: spec.global.allowQuery[1]: "insid" is neither`,
			"all.yaml:14: warning: Bind9Cluster default/dns: spec.global.bindcarConfig.port: 5353 is one of the pod's own",
			`all.yaml:16: warning: Bind9Cluster default/dns: spec.global.bindcarConfig.serviceSpec.sessionAffinity: Unsupported value: "ClientIp": supported values: "ClientIP", "None"`,
			`all.yaml:19: warning: Bind9Cluster default/dns: spec.service.spec.type: Unsupported value: "LoadBalancerr": supported values: "ClusterIP"`,
			`all.yaml:20: warning: Bind9Cluster default/dns: spec.service.spec.loadBalancerSourceRanges[0]: Invalid value: "192.0.2.0"`,
			`all.yaml:21: warning: Bind9Cluster default/dns: spec.volumeMounts: container named mounts volume "data", which there is not`,
			`all.yaml:25: warning: Bind9Cluster default/dns: spec.secondary.allowTransfer[1]: "192.0.2.0/34" is neither`,
			`all.yaml:35: warning: Bind9Instance default/member: spec.config.listenOn[1]: "outside" is neither`,
			`all.yaml:36: warning: Bind9Instance default/member: spec.config.bindcarConfig.serviceSpec.type: Unsupported value: "Node"`,
			`all.yaml:43: warning: Bind9Instance default/alone: spec.service.spec.ipFamilies[1]: Unsupported value: "IPv5"`,
			`all.yaml:43: warning: Bind9Instance default/alone: spec.service.spec.externalIPs[0]: Invalid value: "192.0.2"`,
			`all.yaml:45: warning: Bind9Instance default/alone: spec.volumes: there is another volume "cache"`,
			"all.yaml:50: warning: Bind9Instance default/of-another: spec.clusterRef: there is no Bind9Cluster another",
			`all.yaml:59: warning: Bind9GlobalCluster shared: spec.global.dnssec.signing.kskLifetime: "2d" is shorter`,
			`all.yaml:68: warning: ClusterBind9Provider provider: spec.primary.service.spec.externalTrafficPolicy: Unsupported value: "Locl"`,
			`all.yaml:68: warning: ClusterBind9Provider provider: spec.primary.service.spec.ipFamilyPolicy: Unsupported value: "Dual"`,
		}},
		"a file in a ConfigMap of another entry": {manifests: map[string]string{
			"a.yaml": strings.Replace(good, "spec: {", "spec: {configMapRefs: {namedConf: files}, ", 1),
			"b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata: {named.cnf: ''}\n",
		}, want: []string{`a.yaml:5: warning: Bind9Cluster default/dns: spec.configMapRefs.namedConf: ConfigMap files has no entry "named.conf": it has named.cnf`}},
		"pods that Kubernetes refuses": {manifests: map[string]string{"a.yaml": strings.Replace(good, "spec: {", "spec: {placement: {tolerations: [{key: a, operator: Exist}]},\n  resources: {requests: {cpu: 2}, limits: {cpu: 1}}, ", 1)}, want: []string{
			`a.yaml:5: warning: Bind9Cluster default/dns: spec.placement.tolerations[0].operator: Unsupported value: "Exist": supported values: `,
			`a.yaml:6: warning: Bind9Cluster default/dns: spec.resources.requests[cpu]: Invalid value: "2": must not be above the limit of 1`,
		}},
		"twice":                  {manifests: map[string]string{"a.yaml": good, "b.yaml": good}, refused: true, want: []string{"b.yaml:4: error: Bind9Cluster default/dns: metadata.name: ", "b.yaml:9: error", "b.yaml:18: error"}},
		"bad name":               {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", "name: Lost_}", 1)}, refused: true, want: []string{"a.yaml:4: error: ARecord default/Lost_: metadata.name: Invalid value"}},
		"a name of two lines":    {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", `name: "a\n::error::b\e[0m"}`, 1)}, refused: true, want: []string{`a.yaml:4: error: ARecord default/a\n::error::b\x1b[0m: metadata.name: Invalid value`}},
		"unknown version":        {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "v1beta1", "v1", 1)}, refused: true, want: []string{"a.yaml:2: error: ARecord lost: apiVersion: bindy.firestoned.io/v1 has no kind ARecord: write bindy.firestoned.io/v1beta1"}},
		"a kind in another case": {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "ARecord", "Arecord", 1)}, refused: true, want: []string{"a.yaml:3: error: Arecord lost: kind: bindy.firestoned.io/v1beta1 has no kind Arecord: write ARecord"}},
		"an unknown kind":        {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "ARecord", "AliasRecord", 1)}, refused: true, want: []string{"a.yaml:3: error: AliasRecord lost: kind: bindy.firestoned.io/v1beta1 has no kind AliasRecord; the group has"}},
		"a mistyped group":       {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "firestoned", "firestone", 1)}, refused: true, want: []string{"a.yaml:2: error: ARecord lost: apiVersion: bindy.firestone.io/v1beta1 has no kind ARecord: write bindy.firestoned.io/v1beta1"}},
		"no group":               {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "bindy.firestoned.io/", "", 1)}, refused: true, want: []string{"apiVersion: v1beta1 has no kind ARecord: write bindy.firestoned.io/v1beta1"}},
		"another's kind":         {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "bindy.firestoned.io", "dns.example.com", 1)}},
		"a text for a map":       {manifests: map[string]string{"a.yaml": strings.Replace(good, "clusterRef: dns", "providerRefs: [corp]", 1)}, refused: true, want: []string{`a.yaml:12: error: DNSZone default/z: spec.providerRefs[0]: Invalid value: "string": spec.providerRefs[0] in body must be of type object: "string"; write a map of its fields, such as {name: a}`}},
		"a letter too many":      {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "ARecord", "ARecords", 1)}, refused: true, want: []string{"a.yaml:3: error: ARecords lost: kind: bindy.firestoned.io/v1beta1 has no kind ARecords: write ARecord"}},
		"mistyped labels":        {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", "name: lost,\n  lables: {zone: z}}", 1)}, refused: true, want: []string{"a.yaml:5: error: ARecord default/lost: metadata.lables: Invalid value: unknown field; write labels"}},
		"a name twice":           {manifests: map[string]string{"a.yaml": strings.Replace(good, "clusterRef: dns", "clusterRef: dns\n  guard:\n    neverEmpty:\n    - www\n    - www", 1)}, refused: true, want: []string{`a.yaml:16: error: DNSZone default/z: spec.guard.neverEmpty[1]: Duplicate value: "www"`}},
		"a label of a number":    {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", "name: lost,\n  labels: {zone: 5}}", 1)}, refused: true, want: []string{"a.yaml:5: error: ARecord lost: metadata.labels[zone]: Invalid value: 5: must be a string"}},
		"a boolean to note":      {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", "name: lost, annotations: {x: true}}", 1)}, refused: true, want: []string{"metadata.annotations[x]: Invalid value: true: must be a string"}},
		"numbers for names":      {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", "name: 5, namespace: 6}", 1)}, refused: true, want: []string{"metadata.name: Invalid value: 5: must be a string", "metadata.namespace: Invalid value: 6: must be a string"}},
		"a list for metadata":    {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "{name: lost}", "[]", 1)}, refused: true, want: []string{"a.yaml:4: error: ARecord : metadata: Invalid value: must be a map"}},
		"a generated name":       {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost}", "generateName: lost-}", 1)}, refused: true, want: []string{"a.yaml:4: error: ARecord default/: metadata.generateName: Forbidden: what is applied has a name of its own"}},
		"half a second":          {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost, ipv4", "name: lost, ttl: 60.5, ipv4", 1)}, refused: true, want: []string{"a.yaml:5: error: ARecord default/lost: spec.ttl: Invalid value"}},
		"a comma too many":       {manifests: map[string]string{"a.json": `{"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "ARecord", "metadata": {"name": "a"}, "spec": {"name": "a", "ipv4Addresses": ["192.0.2.1"],}}`}},
		"other kinds":            {manifests: map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_}\n"}},
		"not YAML":               {manifests: map[string]string{"a.yaml": good + "---\na: b: c\n"}, refused: true, want: []string{"a.yaml:21: error: not YAML: "}},
		"missing field":          {manifests: map[string]string{"a.yaml": strings.Replace(doubt, "name: lost, ipv4", "ipv4", 1)}, refused: true, want: []string{"a.yaml:5: error: ARecord default/lost: spec.name: Required value"}},
		"broken zone":            {manifests: map[string]string{"a.yaml": strings.Replace(good, "zoneName: example.com", "zoneName: example.com.", 1)}, refused: true, want: []string{"a.yaml:11: error: DNSZone default/z: spec.zoneName: Invalid value"}},
		"unchanged":              {manifests: map[string]string{"all.yaml": good}, against: good},
		"what may not change": {
			manifests: map[string]string{"all.yaml": strings.Replace(good, "zoneName: example.com", "zoneName: example.net", 1)}, against: good, refused: true,
			want: []string{"all.yaml:11: error: DNSZone default/z: spec.zoneName: Invalid value"},
		},
		"new, beside what was bad": {manifests: map[string]string{"all.yaml": good}, against: strings.Replace(good, "zoneName: example.com", "zoneName: example.com.", 1) + "---\na: b: c\n"},
		"a list of objects":        {manifests: map[string]string{"a.json": `{"apiVersion": "v1", "kind": "List", "items": [` + "\n" + `{"apiVersion": "bindy.firestoned.io/v1beta1", "kind": "Bind9Cluster", "metadata": {"name": "c"}, "spec": {"x": 1}}]}`}, refused: true, want: []string{"a.json:2: error: Bind9Cluster default/c: spec.x: Invalid value: unknown field"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.manifests {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			o := NewOptions()
			o.Files, o.Strict = []string{dir}, tc.strict
			if tc.against != "" {
				o.Against = []string{filepath.Join(t.TempDir(), "before.yaml")}
				if err := os.WriteFile(o.Against[0], []byte(tc.against), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var out, log strings.Builder
			if err := o.Run(t.Context(), nil, &out, &log); errors.Is(err, ErrFindings) != tc.refused || (err != nil && !tc.refused) {
				t.Errorf("%v, want refused = %v", err, tc.refused)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if out.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("%d findings, want %d:\n%s", len(lines), len(tc.want), out.String())
			}
			for i, want := range tc.want {
				if got := strings.TrimPrefix(lines[i], dir+"/"); !strings.Contains(got, want) {
					t.Errorf("finding %d lacks %q: %s", i, want, got)
				}
			}
		})
	}
}

// What programs read has the same findings, and is valid without any.
func TestOutput(t *testing.T) {
	for _, text := range []string{good, good + "---" + conflict} {
		run := func(output string) []byte {
			o := NewOptions()
			o.Files, o.Output = []string{"-"}, output
			var out, log strings.Builder
			if err := o.Run(t.Context(), strings.NewReader(text), &out, &log); err != nil && !errors.Is(err, ErrFindings) {
				t.Fatal(err)
			}
			return []byte(out.String())
		}
		var report struct {
			Objects  int
			Findings []Finding
		}
		if err := json.Unmarshal(run("json"), &report); err != nil || report.Objects < 3 || report.Findings == nil {
			t.Fatalf("%v: %+v", err, report)
		}
		var log sarifLog
		if err := json.Unmarshal(run("sarif"), &log); err != nil || log.Version != "2.1.0" || len(log.Runs) != 1 || log.Runs[0].Results == nil {
			t.Fatalf("%v: %+v", err, log)
		}
		if len(log.Runs[0].Results) != len(report.Findings) {
			t.Errorf("%d results, %d findings", len(log.Runs[0].Results), len(report.Findings))
		}
		for i, result := range log.Runs[0].Results {
			place, f := result.Locations[0].PhysicalLocation, report.Findings[i]
			if Rules[result.RuleID] == "" || result.Message.Text != f.Message || place.Region.StartLine != f.Line || place.ArtifactLocation.URI == "" {
				t.Errorf("result %+v of finding %+v", result, f)
			}
		}
	}
}

// Every rule is explained, at length where it is a trap, and in docs/validate.md.
func TestExplain(t *testing.T) {
	page, err := os.ReadFile("../../docs/validate.md")
	if err != nil {
		t.Fatal(err)
	}
	for rule := range Rules {
		o := NewOptions()
		o.Explain = rule
		var out strings.Builder
		if err := errors.Join(o.Validate(), o.Run(t.Context(), nil, &out, io.Discard)); err != nil || !strings.HasPrefix(out.String(), rule+": "+Rules[rule]) {
			t.Errorf("%s: %v, %q", rule, err, out.String())
		}
		if !strings.Contains(string(page), "`"+rule+"`") {
			t.Errorf("docs/validate.md does not name rule %s", rule)
		}
	}
	for _, known := range trap.All {
		if !strings.Contains(explain(known.ID), known.Explanation) {
			t.Errorf("%s: %q", known.ID, explain(known.ID))
		}
	}
	o := NewOptions()
	o.Explain = "nonsense"
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "caa-value, ") {
		t.Errorf("%v", err)
	}
}

func TestOptions(t *testing.T) {
	o := NewOptions()
	o.Output, o.Against = "xml", []string{"-"}
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "nothing to check") || !strings.Contains(err.Error(), "--against=-") || !strings.Contains(err.Error(), "json, sarif, text") {
		t.Errorf("%v", err)
	}
	o = NewOptions()
	o.Files = []string{filepath.Join(t.TempDir(), "nowhere.yaml")}
	if err := o.Run(t.Context(), nil, nil, nil); err == nil || errors.Is(err, ErrFindings) {
		t.Errorf("a file that is not there: %v", err)
	}
}
