package spelling

import "testing"

func TestNearest(t *testing.T) {
	fields := []string{"ipv4Address", "ipv4Addresses", "name", "ttl", "labels", "annotations"}
	for name, want := range map[string]string{
		"ipv4Adresses": "ipv4Addresses", "ipv4address": "ipv4Address", "IPv4Addresses": "ipv4Addresses", "lables": "labels", "label": "labels", "annotation": "annotations",
		"tll": "ttl", "TTL": "ttl", "x": "", "ns": "", "owner": "", "": "", "address": "",
	} {
		if got := Nearest(name, fields...); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := Nearest("AAARecord", "CAARecord", "ARecord", "AAAARecord"); got != "AAAARecord" {
		t.Errorf("of two that are as near: %q", got)
	}
}
