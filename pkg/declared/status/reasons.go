package status

import (
	"strconv"

	"github.com/lockstep-dns/lockstep/pkg/declared/status/reason"
)

// Condition types that are written to objects.
const (
	// Ready is the summary of the object; every kind has it.
	Ready = "Ready"
	// Progressing is True while a zone is being brought to its servers.
	Progressing = "Progressing"
	// Degraded is True when a zone is served, but not by all of its servers or not with all of its records.
	Degraded = "Degraded"
	// Contested is True while somebody else overwrites RRsets of a zone again and again. It is also the reason for which such a record is
	// not programmed.
	Contested = "Contested"
	// Delegated is True if the zones above a signed zone have its DS records.
	Delegated = "Delegated"
	// Accepted is True if a declaration is part of the desired content of a zone.
	Accepted = "Accepted"
	// Programmed is True if every primary was asked and answered with the declared data.
	Programmed = "Programmed"
)

// PodCondition is the condition type of an instance's pod with the given ordinal, for example "Pod-0".
func PodCondition(index int) string { return "Pod-" + strconv.Itoa(index) }

// instanceCondition is the condition type of a cluster's instance, for example "Bind9Instance-0".
func instanceCondition(index int) string { return "Bind9Instance-" + strconv.Itoa(index) }

// Reasons of zones.
const (
	ReconcileSucceeded    = "ReconcileSucceeded"
	PartialReconciliation = "PartialReconciliation"
	DuplicateZone         = "DuplicateZone"
	NotPermitted          = "NotPermitted"
	ReconcileDegraded     = "ReconcileDegraded"
	PrimaryFailed         = "PrimaryFailed"
	AddressPending        = "AddressPending"
	Overwritten           = "Overwritten"
	Paused                = "Paused"
	// ReasonHeld is the reason for what a zone's guard holds back.
	ReasonHeld = "Held"
)

// Reasons of Delegated of a zone.
const (
	DSPublished    = "DSPublished"
	DSPending      = "DSPending"
	DSDeclared     = "DSDeclared"
	DSWithdrawing  = "DSWithdrawing"
	DSAbsent       = "DSAbsent"
	RegistryBehind = "RegistryBehind"
	ParentSilent   = "ParentSilent"
	DSUnmatched    = "DSUnmatched"
	CDSRejected    = "CDSRejected"
)

// Reasons of records.
const (
	NotSelected        = "NotSelected"
	ZoneNotConfigured  = "ZoneNotConfigured"
	NoPrimaryInstances = "NoPrimaryInstances"
	ReconcileFailed    = "ReconcileFailed"
	Invalid            = "Invalid"
	Conflict           = "Conflict"
	NoMatchingZone     = "NoMatchingZone"
	Pending            = "Pending"
	Shadowed           = "Shadowed"
	Answered           = "Answered"
	NotAnswered        = "NotAnswered"
)

// Reasons of instances and clusters, from the whole to its parts.
const (
	AllReady                 = "AllReady"
	PartiallyReady           = "PartiallyReady"
	NotReady                 = "NotReady"
	NoChildren               = "NoChildren"
	ReasonReady              = "Ready"
	ReasonProgressing        = "Progressing"
	PodsPending              = "PodsPending"
	PodsCrashing             = "PodsCrashing"
	InstancesCreated         = "InstancesCreated"
	InstancesScaling         = "InstancesScaling"
	InstancesPending         = "InstancesPending"
	ClustersReady            = "ClustersReady"
	ClustersProgressing      = "ClustersProgressing"
	ConfigurationValid       = "ConfigurationValid"
	ConfigurationInvalid     = "ConfigurationInvalid"
	NotEnrolled              = "NotEnrolled"
	ForeignPods              = "ForeignPods"
	ZonesNotLoaded           = "ZonesNotLoaded"
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	RNDCAuthenticationFailed = reason.RNDCAuthenticationFailed
	ZoneTransferComplete     = "ZoneTransferComplete"
	ZoneTransferFailed       = "ZoneTransferFailed"
	UpstreamUnreachable      = reason.UpstreamUnreachable
	ZoneNotFound             = reason.ZoneNotFound
	BindcarBadRequest        = reason.BindcarBadRequest
	BindcarAuthFailed        = reason.BindcarAuthFailed
	BindcarInternalError     = reason.BindcarInternalError
	BindcarNotImplemented    = reason.BindcarNotImplemented
	BindcarUnreachable       = reason.BindcarUnreachable
	GatewayError             = reason.GatewayError
)
