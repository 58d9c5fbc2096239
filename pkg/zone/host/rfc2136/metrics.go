package rfc2136

import (
	"errors"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// updates counts UPDATE messages in the whole process. A server cannot add series: rcodes without a name are one.
var updates = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "lockstep_dns_updates_total", Help: "UPDATE messages by the rcode of the answer, or its TSIG error; none when there was no valid answer.",
}, []string{"rcode"})

func init() { metrics.Registry.MustRegister(updates) }

// countUpdate counts a message by its answer. Rcodes have their names, for example REFUSED. An answer that refuses the key is an error,
// whose TSIG error says more than its rcode: BADKEY, BADSIG or BADTIME.
func countUpdate(reply *dns.Msg, err error) {
	var e *wire.Error
	rcode := "none"
	switch {
	case err == nil:
		rcode = rcodeName(reply.Rcode)
	case errors.As(err, &e) && e.TSIGError != 0:
		rcode = rcodeName(int(e.TSIGError))
	case errors.As(err, &e) && e.Rcode != dns.RcodeSuccess:
		rcode = rcodeName(e.Rcode)
	}
	updates.WithLabelValues(rcode).Inc()
}

func rcodeName(rcode int) string {
	if rcode == dns.RcodeBadSig { // miekg/dns has the other meaning of 16, which no UPDATE is answered with.
		return "BADSIG"
	}
	if name, known := dns.RcodeToString[rcode]; known {
		return name
	}
	return "other"
}
