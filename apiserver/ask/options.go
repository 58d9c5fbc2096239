// Package ask asks servers for what verdicts follow from, and keeps their answers where package evaluate finds them: what servers hold, what
// they answer to resolvers and to clients, with which keys and signatures. Whoever wants to know the same at the same time shares a question;
// package refresh says when to ask.
package ask

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/lockstep-dns/lockstep/pkg/dns/observe"
	"github.com/lockstep-dns/lockstep/pkg/dns/outbound"
)

// Options of an Asker.
type Options struct {
	// Deadline is how long a server is waited for that does not answer; a verdict then says which were too slow.
	Deadline time.Duration
	// VerifyInterval is how often a zone's content is transferred completely although its serial has not changed.
	VerifyInterval time.Duration
	// QuestionRate is how many questions a server that is read by query gets in a second, at most; 0 for no limit.
	QuestionRate int
	// Limits bound what servers can make the API server take.
	Limits observe.Limits
	// Gate decides which addresses servers of DNSProviders may have; nil permits all.
	Gate *outbound.Gate
	// Vantages ask from elsewhere what clients get; see AskFurther.
	Vantages []Vantage
	// TLS is what sidecars are connected to with; nil to ask no sidecar.
	TLS func(context.Context) (*tls.Config, error)
}
