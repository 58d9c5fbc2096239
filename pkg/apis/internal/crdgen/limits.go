package main

import (
	"cmp"
	"math"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	// quantityPattern is what resource.ParseQuantity reads, within bounds: controller-gen's own accepts fractions as exponents,
	// which cannot be decoded, and exponents of any size, with which a few bytes cost gigabytes.
	quantityPattern = `^[+-]?([0-9]{1,18}([.][0-9]{0,9})?|[.][0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// timePattern is what metav1.Time reads of the format date-time (RFC 3339), which allows lower-case letters and leap seconds.
	timePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-5][0-9])$`
	// maxExactInteger is the largest integer that JSON's numbers hold exactly (RFC 8259, section 6).
	maxExactInteger = 1<<53 - 1
)

// limitToGoType makes a schema refuse what the Go type of its field cannot hold: a stored object that cannot be decoded
// would stop the caches of every component.
func limitToGoType(s *apiextensionsv1.JSONSchemaProps) {
	switch {
	case s.XIntOrString && s.Pattern != "": // a resource.Quantity
		s.Pattern = quantityPattern
		limitNumber(s, maxExactInteger)
	case s.XIntOrString: // an intstr.IntOrString
		limitNumber(s, math.MaxInt32)
	case s.Type == "integer" && s.Format == "int32":
		limitNumber(s, math.MaxInt32)
	case s.Type == "integer":
		limitNumber(s, maxExactInteger)
	case s.Format == "date-time":
		s.Pattern = timePattern
		// kube-apiserver accepts a list for any string that has a format. No list has these bounds.
		s.MinItems, s.MaxItems = new(int64(1)), new(int64(0))
	}
}

// limitNumber bounds a number unless it is bounded already.
func limitNumber(s *apiextensionsv1.JSONSchemaProps, most float64) {
	s.Minimum = cmp.Or(s.Minimum, new(-most))
	s.Maximum = cmp.Or(s.Maximum, new(most))
}
