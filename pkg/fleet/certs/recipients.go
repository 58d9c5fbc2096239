package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Recipient is a component that gets its certificate from the Keeper, in a Secret that it alone may read.
type Recipient struct {
	Secret  string
	Subject Subject
}

// issueTo keeps the certificate of one recipient: a Secret that is missing, was changed or is due gets a new one.
func (k *Keeper) issueTo(ctx context.Context, state State, r Recipient) error {
	key := types.NamespacedName{Namespace: k.Secret.Namespace, Name: r.Secret}
	secret, err := k.Client.CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		secret = newSecret(key)
		secret.Type = corev1.SecretTypeTLS
	case err != nil:
		return fmt.Errorf("reading Secret %s: %w", key, err)
	case state.IsCurrent(secret.Data, k.now(), r.Subject):
		return nil
	}
	if secret.Data, err = state.Issue(k.now(), r.Subject); err != nil {
		return fmt.Errorf("issuing the certificate of Secret %s: %w", key, err)
	}
	if _, err := k.write(ctx, secret); err != nil {
		return err
	}
	k.Log.Info("Issued a certificate", "secret", key)
	return nil
}

// remember makes a stored state the one that certificates are issued from.
func (k *Keeper) remember(state State) {
	k.mu.Lock()
	first, changed := k.last.Signer == nil, !bytes.Equal(k.last.Bundle(), state.Bundle())
	k.last = state
	k.mu.Unlock()
	if first {
		close(k.known)
	}
	if changed && k.Changed != nil {
		k.Changed()
	}
}

// State is the authority as last stored. It waits until that is known.
func (k *Keeper) State(ctx context.Context) (State, error) {
	select {
	case <-k.known:
	case <-ctx.Done():
		return State{}, fmt.Errorf("%w: %w", errNoAuthority, ctx.Err())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, nil
}

// ClientConfig is what this process connects to sidecars with at this moment. Its certificate is never stored.
func (k *Keeper) ClientConfig(ctx context.Context) (*tls.Config, error) {
	state, err := k.State(ctx)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !state.IsCurrent(k.client, k.now(), k.Self) {
		if k.client, err = state.Issue(k.now(), k.Self); err != nil {
			return nil, fmt.Errorf("issuing a client certificate: %w", err)
		}
	}
	return ClientConfig(k.client)
}
