package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/miekg/dns"

	"github.com/lockstep-dns/lockstep/pkg/dns/rrset"
)

// FuzzReply: whatever a server answers a question with, it is decoded or refused.
func FuzzReply(f *testing.F) {
	f.Add([]byte{}, true)
	question := new(dns.Msg).SetQuestion("example.test.", dns.TypeSOA)
	f.Fuzz(func(t *testing.T, raw []byte, ours bool) {
		req, err := newRequest(question, nil)
		if err != nil {
			t.Fatal(err)
		}
		setID(raw, req, ours)
		m, err := req.parseReply(raw)
		if err == nil && (m.Id != req.id || !m.Response || !ours) {
			t.Errorf("%x passes for a reply", raw)
		}
	})
}

// FuzzTransfer: whatever stream of messages a server sends, it is a transfer within its limits, or refused.
func FuzzTransfer(f *testing.F) {
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, stream []byte, incremental bool) {
		var from *rrset.SOA
		if incremental {
			from = &rrset.SOA{Serial: 5, MName: "ns.", RName: "hm."}
		}
		m := transferRequest("example.test.", from)
		req, err := newRequest(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		limits := limitsOf([]TransferOption{WithLimits(Limits{Records: 10})})
		a := newAssembler(m, limits)
		for reader := bytes.NewReader(stream); !a.complete; {
			raw, err := readMessage(reader, dns.MaxMsgSize)
			if err != nil {
				return
			}
			setID(raw, req, true)
			reply, err := req.parseTransferReply(raw)
			if err != nil || a.addMessage(reply.Rcode, reply.answers, reply.records()) != nil {
				return
			}
		}
		records := a.result.Records
		for _, d := range a.result.Deltas {
			records = append(append(records, d.Deleted...), d.Added...)
		}
		for _, r := range records {
			if !rrset.IsSubdomain(r.Name, "example.test.") || r.Rdata == "" && r.Type == dns.TypeA {
				t.Errorf("%x brings %v", stream, r)
			}
		}
		if len(records) > limits.Records {
			t.Errorf("%x brings %d records", stream, len(records))
		}
	})
}

// setID makes a message answer a request, which has a random ID, or another one.
func setID(raw []byte, req *request, same bool) {
	id := req.id
	if !same {
		id++
	}
	if len(raw) > 2 {
		binary.BigEndian.PutUint16(raw, id)
	}
}
