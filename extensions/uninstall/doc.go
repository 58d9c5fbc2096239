// Package uninstall lets "kubectl delete -k" take Lockstep away, with zones and records and all, without anything hanging.
//
// The difficulty: zones and records carry a finalizer that only the controller removes. When everything is deleted at
// once, kube-apiserver deletes all objects of a deleted CustomResourceDefinition and waits for their finalizers, while
// within the same second our ServiceAccounts, their rights and the Deployments go as well. Finalizers that nobody
// removes keep the definitions, and every namespace that holds such an object, from ever going away.
//
// So the fleet manager keeps a second account, lockstep-uninstall, with its ClusterRole and ClusterRoleBinding, that is in no
// manifest: kubectl does not delete it. The account goes when its namespace does, and a namespace's content is deleted
// only after its last pod has ended (Kubernetes 1.33 and later); role and binding are owned by the Namespace object, so the
// garbage collector takes them after that. The account may do nothing but list our custom resources and patch them.
//
// With it the fleet manager watches our CustomResourceDefinitions. When one is being deleted, every object of that kind loses
// our finalizer at once: the definition's deletion is the order to forget the data. The pod stays until that is done, up
// to its terminationGracePeriodSeconds, also when the signal to end comes first.
//
// An uninstalled Helm release is the same, except that the namespace stays and that the definitions may (crds.keep). Helm deletes them last,
// so the ending fleet manager waits a moment for the deletion of those that are not to be kept.
//
// No object of an installation carries a finalizer of ours except the custom resources, so nothing else can hang. When no
// fleet manager runs during the deletion, docs/uninstall.md has the one command that does its part.
package uninstall
