package main

import (
	"context"
	"os"
	_ "time/tzdata" // time zones of CronJobs, on machines without zoneinfo

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserverapp "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanagerapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxyapp "k8s.io/kubernetes/cmd/kube-proxy/app"
	schedulerapp "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
)

func etcd()              { etcdmain.Main(os.Args) }
func apiServer()         { serve(apiserverapp.NewAPIServerCommand()) }
func controllerManager() { serve(controllermanagerapp.NewControllerManagerCommand()) }
func kubelet()           { serve(kubeletapp.NewKubeletCommand(context.Background())) }
func proxy()             { serve(proxyapp.NewProxyCommand()) }
func scheduler()         { serve(schedulerapp.NewSchedulerCommand()) }

// serve runs a server until it is told to stop, and ends the process.
func serve(cmd *cobra.Command) { os.Exit(cli.Run(cmd)) }

// kubectl reads its verbosity before the command is made, since making it
// already logs (plug-ins, kuberc).
func kubectl() {
	_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
	}
}
