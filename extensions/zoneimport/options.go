package zoneimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dns/lockstep/pkg/declared/declaration"
	"github.com/lockstep-dns/lockstep/pkg/declared/source"
	"github.com/lockstep-dns/lockstep/pkg/dns/wire"
)

// ErrIncomplete says that manifests were written and do not say all that the zone says.
var ErrIncomplete = errors.New("the manifests do not say all that the zone says")

// Forms of the objects, for --as.
const (
	asRecords   = "records"
	asEndpoints = "endpoints"
)

// Options are the flags of the command.
type Options struct {
	// Zone is the name of the zone.
	Zone string
	// Server is ADDRESS[:PORT] of a server to transfer from, KeyFile a file with the key for that.
	Server, KeyFile string
	// File is a zone file, "-" for standard input; IncludeFrom is the folder that its $INCLUDEs may read from.
	File, IncludeFrom string
	// Provider is the name of a DNSProvider to transfer from, of the namespace and the cluster of Kubeconfig.
	Provider   string
	Kubeconfig clientcmd.ClientConfig
	// Cluster and Instances are who is to serve the zone, Namespace where the objects are to be.
	Cluster   string
	Instances map[string]string
	Namespace string
	// Output is a folder; empty for standard output.
	Output string
	// As is the form of the objects: "records" or "endpoints".
	As string
	// WithoutExternalDNS leaves out what external-dns has published, which names its TXT records by TXTPrefix, TXTSuffix and TXTWildcard.
	WithoutExternalDNS                bool
	TXTPrefix, TXTSuffix, TXTWildcard string
	// MaxRecords and MaxBytes bound the zone.
	MaxRecords int
	MaxBytes   int64
	// maxRecordsPerType is the DNSProvider's, 0 if there is none.
	maxRecordsPerType int32
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{As: asRecords, MaxRecords: wire.DefaultRecords, MaxBytes: wire.DefaultBytes}
}

// AddFlags registers the flags with their defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Zone, "zone", o.Zone, "`name` of the zone: example.com")
	fs.StringVar(&o.Server, "server", o.Server, "`address[:port]` of a server of the zone, which is asked for a transfer")
	fs.StringVar(&o.KeyFile, "key-file", o.KeyFile, "`file` with the TSIG key for the transfer, as tsig-keygen(8) writes it")
	fs.StringVar(&o.File, "file", o.File, "zone `file`, or - for standard input")
	fs.StringVar(&o.IncludeFrom, "include-from", o.IncludeFrom, "`folder` that $INCLUDE may read from and that its names are relative to; without it, $INCLUDE is an error")
	fs.StringVar(&o.Cluster, "cluster", o.Cluster, "`name` of the cluster that is to serve the zone (spec.clusterRef)")
	fs.StringToStringVar(&o.Instances, "instances", o.Instances, "`labels` of the Bind9Instances that are to serve the zone (spec.bind9InstancesFrom): app=dns")
	fs.StringVarP(&o.Namespace, "namespace", "n", o.Namespace, "`namespace` of the objects; without it, the one that they are applied to")
	fs.StringVar(&o.Output, "output", o.Output, "write files into this `folder`, which must be new or empty, instead of to standard output")
	fs.StringVar(&o.As, "as", o.As, "`form` of the data: records, an object for each RRset; or endpoints, DNSEndpoints of up to 500 RRsets each, for large zones")
	fs.BoolVar(&o.WithoutExternalDNS, "without-external-dns", o.WithoutExternalDNS, "leave out what external-dns has published, and its TXT records of ownership: it publishes that by Lockstep from now on")
	fs.StringVar(&o.TXTPrefix, "txt-prefix", o.TXTPrefix, "`prefix` of the names of these TXT records: external-dns' flag of that name")
	fs.StringVar(&o.TXTSuffix, "txt-suffix", o.TXTSuffix, "`suffix` of the first labels of these names: external-dns' flag of that name")
	fs.StringVar(&o.TXTWildcard, "txt-wildcard-replacement", o.TXTWildcard, "`label` in these names in place of *: external-dns' flag of that name")
	fs.IntVar(&o.MaxRecords, strings.TrimLeft(wire.RecordsFlag, "-"), o.MaxRecords, "`number` of records that the zone may have")
	fs.Int64Var(&o.MaxBytes, strings.TrimLeft(wire.BytesFlag, "-"), o.MaxBytes, "`number` of bytes of memory that the zone may take")
}

// Validate names every flag that is wrong.
func (o *Options) Validate() error {
	var errs []error
	if _, err := declaration.ZoneName(o.Zone); o.Zone == "" {
		errs = append(errs, errors.New("--zone is missing: name the zone, such as example.com"))
	} else if err != nil {
		errs = append(errs, fmt.Errorf("--zone: %w", err))
	}
	places := slices.DeleteFunc([]string{o.Server, o.File, o.Provider}, func(place string) bool { return place == "" })
	if len(places) != 1 {
		errs = append(errs, errors.New("where is the zone? Give either --server=ADDRESS or --file=ZONEFILE, or dnsprovider/NAME"))
	}
	if o.KeyFile != "" && o.Server == "" {
		errs = append(errs, errors.New("--key-file goes with --server"))
	}
	if o.IncludeFrom != "" && o.File == "" {
		errs = append(errs, errors.New("--include-from goes with --file"))
	}
	if o.TXTPrefix+o.TXTSuffix+o.TXTWildcard != "" && !o.WithoutExternalDNS {
		errs = append(errs, errors.New("--txt-prefix, --txt-suffix and --txt-wildcard-replacement go with --without-external-dns"))
	}
	if o.As != asRecords && o.As != asEndpoints {
		errs = append(errs, fmt.Errorf("--as=%q: it is %s or %s", o.As, asRecords, asEndpoints))
	}
	if o.MaxRecords <= 0 || o.MaxBytes <= 0 {
		errs = append(errs, fmt.Errorf("%s and %s are above 0", wire.RecordsFlag, wire.BytesFlag))
	}
	errs = append(errs, o.validateObjects())
	return errors.Join(errs...)
}

// validateObjects checks what goes into the objects as it is.
func (o *Options) validateObjects() error {
	var errs []error
	if o.Namespace != "" {
		for _, problem := range validation.ValidateNamespaceName(o.Namespace, false) {
			errs = append(errs, fmt.Errorf("--namespace=%s: %s", o.Namespace, problem))
		}
	}
	if o.Cluster != "" {
		for _, problem := range validation.NameIsDNSSubdomain(o.Cluster, false) {
			errs = append(errs, fmt.Errorf("--cluster=%s: %s", o.Cluster, problem))
		}
	}
	if err := metav1validation.ValidateLabels(o.Instances, field.NewPath("--instances")).ToAggregate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Run writes the manifests to out or into the folder, and to log what they lack and a summary. It gives ErrIncomplete when they
// lack anything; any other error means that there are none.
func (o *Options) Run(ctx context.Context, in io.Reader, out, log io.Writer) error {
	report := &differenceReport{}
	content, err := o.readContent(ctx, in, report, log)
	if err != nil {
		return err
	}
	if o.WithoutExternalDNS {
		published, ownership := content.withoutExternalDNS(ownershipNames{o.TXTPrefix, o.TXTSuffix, o.TXTWildcard}, report)
		fmt.Fprintf(log, "%s: %d RRsets that external-dns publishes, and its %d TXT records of ownership, were left out\n", content.name, published, ownership)
	}
	builder := &manifestBuilder{
		content: content, servers: zoneServers{o.Cluster, o.Instances, o.Provider}, namespace: o.Namespace, asEndpoints: o.As == asEndpoints, report: report,
		maxRecords: int(o.maxRecordsPerType),
	}
	if err := builder.build(); err != nil {
		return err
	}
	objects := append([]source.Object{builder.zone}, builder.objects...)
	if o.Provider != "" { // The last to be applied: what the objects before it do not declare yet must not be taken from servers that are in use.
		objects = append(builder.objects, builder.zone)
	}
	if o.Output != "" {
		err = writeFolder(o.Output, objects)
	} else {
		err = writeStream(out, objects)
	}
	if err != nil {
		return err
	}
	report.write(log)
	o.writeSummary(log, content, objects, report.count())
	if report.count() > 0 {
		return ErrIncomplete
	}
	return nil
}

// readContent reads the zone from where it is.
func (o *Options) readContent(ctx context.Context, in io.Reader, report *differenceReport, log io.Writer) (*zoneContent, error) {
	name, err := declaration.ZoneName(o.Zone)
	if err != nil {
		return nil, fmt.Errorf("--zone: %w", err)
	}
	progress := func(records int) { fmt.Fprintf(log, "%s: %d records so far\n", name, records) }
	reader := newContentReader(name, wire.Limits{Records: o.MaxRecords, Bytes: o.MaxBytes}, report, progress)
	if o.File != "" {
		err = reader.readZoneFile(in, o.File, o.IncludeFrom)
	} else {
		err = o.transferZone(ctx, reader, log)
	}
	if err != nil {
		return nil, err
	}
	return reader.finish()
}

func (o *Options) transferZone(ctx context.Context, reader *contentReader, log io.Writer) error {
	origin, err := zoneOrigin{servers: []string{o.Server}, keyPlace: "--key-file"}, error(nil)
	switch {
	case o.Provider != "":
		origin, err = o.readProvider(ctx)
	case o.KeyFile != "":
		origin.key, err = readKeyFile(o.KeyFile)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "%s: transfer from %s\n", reader.name, strings.Join(origin.servers, " or "))
	return reader.readTransfer(ctx, origin)
}

// largeZone is from how many objects on DNSEndpoints are recommended.
const largeZone = 10_000

// writeSummary says what was read and written, and what the user may have to do about it.
func (o *Options) writeSummary(log io.Writer, content *zoneContent, objects []source.Object, differences int) {
	fmt.Fprintf(log, "%s: serial %d, %d records in %d RRsets; objects: %d, differences: %d\n",
		content.name, content.soa.Serial, content.records, len(content.sets), len(objects), differences)
	if content.signing > 0 {
		fmt.Fprintf(log, "%s is signed: its %d records of DNSSEC (RRSIG, NSEC, DNSKEY and others) are made by the server that signs, and were left out, as were its keys; remove the DS records from the parent zone before you change servers\n",
			content.name, content.signing)
	}
	if content.aged > 0 {
		fmt.Fprintf(log, "%s: %d records have a time stamp of Microsoft's DNS server, as [AGE:3636591], which was skipped: Lockstep removes no record by its age\n", content.name, content.aged)
	}
	if o.Cluster == "" && len(o.Instances) == 0 && o.Provider == "" {
		fmt.Fprintln(log, "nobody is to serve the zone yet: give --cluster or --instances, or set spec.clusterRef of the DNSZone")
	}
	if len(objects) > largeZone && o.As == asRecords {
		fmt.Fprintf(log, "%d objects are a lot for one zone: with --as=endpoints it takes DNSEndpoints of up to %d RRsets each\n", len(objects), maxEndpoints)
	}
}
