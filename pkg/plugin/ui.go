package plugin

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lockstep-dns/lockstep/pkg/plugin/ui"
)

func uiCommand(o *commandOptions) *cobra.Command {
	var port int
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show zones and servers in the browser",
		Long: `Show zones and servers in the browser, as they change. The page is served on 127.0.0.1 until the command is interrupted. It
reads with your rights, and cannot change anything. The URL works once: run the command again for another browser.`,
		Example: `  # The zones of all namespaces
  kubectl lockstep ui -A

  # On a remote machine: forward the port with ssh -L 8053:127.0.0.1:8053, and open the URL
  kubectl lockstep ui --no-browser --port=8053`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := o.kubeconfig().ClientConfig()
			if err != nil {
				return fmt.Errorf("kubeconfig: %w", err)
			}
			scope := ui.Scope{Selector: o.selector}
			if !o.allNamespaces {
				if scope.Namespace, _, err = o.kubeconfig().Namespace(); err != nil {
					return fmt.Errorf("kubeconfig: %w", err)
				}
			}
			s, err := ui.NewServer(cmd.Context(), config, scope, port)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The page is at %s (works once). Press Ctrl-C to end.\n", s.URL())
			if !noBrowser {
				if err := openBrowser(cmd.Context(), s.URL()); err != nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "cannot open a browser (%v): open the URL yourself\n", err)
				}
			}
			return s.Serve(cmd.Context())
		},
	}
	o.addSelectionFlags(cmd.Flags())
	cmd.Flags().IntVar(&port, "port", 0, "Port on 127.0.0.1; 0 means any that is free")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "Only print the URL")
	return cmd
}

// openBrowser opens a URL as the desktop does.
func openBrowser(ctx context.Context, url string) error {
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	browser := exec.CommandContext(ctx, command[0], append(command[1:], url)...) //nolint:gosec // a fixed command and our own URL
	if err := browser.Start(); err != nil {
		return err
	}
	go func() { _ = browser.Wait() }() // Its exit code says nothing about the page.
	return nil
}
