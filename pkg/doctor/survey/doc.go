// Package survey reads what package doctor judges: through kube-apiserver, with the user's rights, and without changing anything. Of a
// Secret it keeps certificates, or what is wrong with it.
package survey
