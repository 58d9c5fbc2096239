package apply

// UninstallAccount is the name of the ServiceAccount that completes an uninstallation, and of its ClusterRole and ClusterRoleBinding.
const UninstallAccount = "lockstep-uninstall"
