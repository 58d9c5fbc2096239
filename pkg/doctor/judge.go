package doctor

// Groups of checks.
const (
	groupInstallation = "Installation"
	groupCertificates = "Certificates"
	groupAdmission    = "Admission"
	groupSyncStatus   = "SyncStatus"
	groupServers      = "Servers"
	groupObjects      = "Objects"
)

// Checks that need nothing but kube-apiserver.
const (
	checkKubernetes = "kube-apiserver"
	checkClocks     = "clocks"
)

// checks are all checks, in the order of the report.
var checks = []struct {
	group, name string
	judge       func(*Facts) Finding
}{
	{groupInstallation, checkKubernetes, judgeKubernetes},
	{groupInstallation, "deployments", judgeDeployments},
	{groupInstallation, "definitions", judgeDefinitions},
	{groupInstallation, "images", judgeImages},
	{groupInstallation, "plugin", judgePlugin},
	{groupInstallation, "leases", judgeLeases},
	{groupInstallation, checkClocks, judgeClocks},
	{groupCertificates, "serving", judgeServing},
	{groupCertificates, "caBundles", judgeBundles},
	{groupCertificates, "clients", judgeClients},
	{groupCertificates, "sidecars", judgeSidecarCertificates},
	{groupAdmission, "webhooks", judgeWebhooks},
	{groupAdmission, "endpoints", judgeWebhookEndpoints},
	{groupAdmission, "dry run", judgeAdmission},
	{groupSyncStatus, "APIService", judgeAPIService},
	{groupSyncStatus, "endpoints", judgeAPIServerEndpoints},
	{groupSyncStatus, "answers", judgeAnswers},
	{groupServers, "reachable", judgeReachable},
	{groupServers, "sidecars", judgeSidecars},
	{groupServers, "transfers", judgeTransfers},
	{groupServers, "clocks", judgeServerClocks},
	{groupServers, "keys", judgeKeys},
	{groupServers, "rotation", judgeRotation},
	{groupObjects, "statuses", judgeStatuses},
	{groupObjects, "ready", judgeReady},
	{groupObjects, "in sync", judgeInSync},
}

// Judge makes the finding of each check, in the order of the report.
func Judge(f *Facts) Report {
	report := make(Report, len(checks))
	for i, c := range checks {
		report[i] = c.judge(f)
		report[i].Group, report[i].Check = c.group, c.name
	}
	return report
}
