package bindcar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/lockstep-dns/lockstep/pkg/share"
)

// Limits of a response, in bytes. A sidecar may be anybody's program: what it sends is decoded piece by piece, and in memory
// may take a hundred times what it takes as JSON.
const (
	// maxResponse is for a response that is not a list.
	maxResponse = 1 << 20
	// maxListResponse is more than the list of 100,000 zones takes.
	maxListResponse = 64 << 20
	// maxFields is how many fields a list has, known or not.
	maxFields = 32
	// maxItem is for one zone of a list.
	maxItem = 16 << 10
	// maxName is for the name of a zone, which may have escapes.
	maxName = 4 * 255
	// maxListMemory is for a decoded list, maxListsMemory for all lists that are decoded at the same time.
	maxListMemory  = 128 << 20
	maxListsMemory = 256 << 20
)

// lists is the memory of all lists. The sidecars of one namespace get three quarters: lists that never end keep nobody else's from being read.
var lists = share.NewPool(maxListsMemory, maxListsMemory/4*3)

var (
	// errTooLarge means that a response exceeds a limit.
	errTooLarge = errors.New("the response is too large")
	// errNotList means that a list of zones has another form.
	errNotList = errors.New("the response is not a list of zones")
)

// decodeResponse decodes the response of a sidecar in a namespace.
func decodeResponse(namespace string, response *http.Response, out any) error {
	if response.StatusCode >= 300 {
		var failure Failure
		if decodeValue(response.Body, &failure) != nil {
			failure.Error = http.StatusText(response.StatusCode)
		}
		return newError(response.StatusCode, failure)
	}
	var err error
	switch out := out.(type) {
	case nil:
	case *ZoneList:
		err = decodeZoneList(namespace, response.Body, out)
	default:
		err = decodeValue(response.Body, out)
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	message := "sent a response that is not JSON"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooLarge):
		message = "sent a response that is too large"
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, errNotList), errors.Is(err, io.EOF):
	default:
		return unreachable(err)
	}
	return &Error{Code: response.StatusCode, Reason: newError(http.StatusInternalServerError, Failure{}).Reason,
		Message: message, Details: err.Error(), Err: err}
}

// decodeValue decodes a response that is not a list.
func decodeValue(body io.Reader, out any) error {
	text, err := io.ReadAll(io.LimitReader(body, maxResponse+1))
	if err != nil {
		return err
	}
	if len(text) > maxResponse {
		return fmt.Errorf("%w: it has more than %d bytes", errTooLarge, maxResponse)
	}
	return json.Unmarshal(text, out)
}

// listDecoder decodes a list of zones.
type listDecoder struct {
	*json.Decoder
	namespace string
	body      io.Reader
	// read is how many bytes were read. memory is what was decoded so far takes; reserved is what was taken of the memory of lists for it.
	read, memory, reserved int64
}

// decodeZoneList decodes a list of zones, one at a time.
func decodeZoneList(namespace string, body io.Reader, list *ZoneList) error {
	d := &listDecoder{namespace: namespace, body: body}
	d.Decoder = json.NewDecoder(d)
	defer func() { lists.Add(namespace, -d.reserved) }()
	if err := d.expect(json.Delim('{')); err != nil {
		return err
	}
	for n := 0; d.More(); n++ {
		if n == maxFields {
			return fmt.Errorf("%w: it has more than %d fields", errTooLarge, maxFields)
		}
		field, err := d.Token()
		if err != nil {
			return err
		}
		switch field {
		case "zones":
			err = decodeArray(d, &list.Zones, func(name string) string { return name }, sizeOfListed)
		case "items":
			err = decodeArray(d, &list.Items, func(z Zone) string { return z.Name }, sizeOfZone)
		case "count":
			err = d.Decode(&list.Count)
		default:
			var ignored json.RawMessage
			err = d.Decode(&ignored)
		}
		if err != nil {
			return err
		}
	}
	return d.expect(json.Delim('}'))
}

// decodeArray appends the elements of an array, or nothing for null.
func decodeArray[E any](d *listDecoder, all *[]E, nameOf func(E) string, sizeOf func(E) int) error {
	opening, err := d.Token()
	switch {
	case err != nil || opening == nil:
		return err
	case opening != json.Delim('['):
		return fmt.Errorf("%w: %v instead of an array", errNotList, opening)
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if len(raw) > maxItem {
			return fmt.Errorf("%w: a zone takes more than %d bytes", errTooLarge, maxItem)
		}
		var element E
		if err := json.Unmarshal(raw, &element); err != nil {
			return err
		}
		if len(nameOf(element)) > maxName {
			return fmt.Errorf("%w: the name of a zone has more than %d bytes", errTooLarge, maxName)
		}
		if err := d.reserve(sizeOf(element)); err != nil {
			return err
		}
		*all = append(*all, element)
	}
	return d.expect(json.Delim(']'))
}

// reserve takes memory for an element.
func (d *listDecoder) reserve(size int) error {
	const step = 1 << 20
	d.memory += int64(size)
	for d.memory > d.reserved {
		if d.reserved >= maxListMemory || lists.Take(d.namespace, step) != nil {
			return fmt.Errorf("%w: its zones take too much memory (%d bytes of at most %d, and %d for all servers)", errTooLarge, d.memory, maxListMemory, maxListsMemory)
		}
		d.reserved += step
	}
	return nil
}

func (d *listDecoder) expect(want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%w: %v instead of %s", errNotList, got, want)
	}
	return err
}

// Sizes of strings and zones in memory, in bytes, beside their text; slices have room to grow.
const (
	nameOverhead = 2 * 16
	// listedOverhead is that of a name in a list of its own, with what decoding it leaves behind: a list is to be refused within seconds.
	listedOverhead = 128
	zoneOverhead   = 2 * 256
)

func sizeOfListed(name string) int { return listedOverhead + len(name) }

func sizeOfName(name string) int { return nameOverhead + len(name) }

func sizeOfZone(z Zone) int {
	size := zoneOverhead + len(z.Name) + len(z.FilePath) + len(z.Type) + len(z.DNSSECPolicy) + len(z.KeySecret) + len(z.Owner) + len(z.OwnerUID)
	for _, names := range [][]string{z.AlsoNotify, z.AllowTransfer, z.Primaries} {
		for _, name := range names {
			size += sizeOfName(name)
		}
	}
	return size
}

// Read reads the response for the decoder. It fails when the response, or one value in it, is too large; the decoder would
// keep a value as a whole.
func (d *listDecoder) Read(p []byte) (int, error) {
	switch {
	case d.read >= maxListResponse:
		return 0, fmt.Errorf("%w: it has more than %d bytes", errTooLarge, maxListResponse)
	case d.read-d.InputOffset() > maxResponse:
		return 0, fmt.Errorf("%w: a zone takes more than %d bytes", errTooLarge, maxItem)
	}
	n, err := d.body.Read(p[:min(len(p), maxResponse)])
	d.read += int64(n)
	return n, err
}
