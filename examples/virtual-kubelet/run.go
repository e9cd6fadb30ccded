// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

const (
	software = "virtual-kubelet example"
	// The API server's audit log tells the two apart.
	storeAgent, frameworkAgent = "timetable-store", "timetable-framework"

	podWorkers    = 4
	retryRegister = 2 * time.Second
)

type options struct {
	kubeconfig, node, dataDir string
	out                       io.Writer // gets a line for each status that is stored
	log                       *slog.Logger
}

// run is the program, on the API server of a kubeconfig.
func run(ctx context.Context, o options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	return serve(ctx, o, config)
}

// serve runs the store, the provider and the framework's two controllers until the context
// ends or one of them can't go on. The store is opened first and closed last.
func serve(ctx context.Context, o options, config *rest.Config) (err error) {
	storeClient, err := clientFor(config, storeAgent)
	if err != nil {
		return err
	}
	client, err := clientFor(config, frameworkAgent)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return err
	}
	store, err := manager.Open(manager.Options{
		Path:     filepath.Join(o.dataDir, journal.FileName),
		Node:     o.node,
		Software: software,
		Client:   storeClient,
		Logger:   o.log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	mine := podsOfNode(client, o.node)
	p := newProvider(store, mine.Core().V1().Pods().Lister(), o)
	events := record.NewBroadcaster()
	defer events.Shutdown()
	events.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.CoreV1().Events(v1.NamespaceAll)})
	recorder := events.NewRecorder(scheme.Scheme, v1.EventSource{Component: "timetable", Host: o.node})
	pods, err := node.NewPodController(podControllerConfig(client, mine, p, recorder))
	if err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return store.Run(ctx) })
	group.Go(func() error { return p.run(ctx) })
	group.Go(func() error { return registerNode(ctx, client, o) })
	mine.Start(ctx.Done())
	group.Go(func() error {
		if err := pods.Run(ctx, podWorkers); ctx.Err() == nil {
			return errors.Join(errors.New("the pod controller ended"), err)
		}
		return nil
	})
	err = group.Wait()
	mine.Shutdown()
	return err
}

func clientFor(config *rest.Config, agent string) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	return kubernetes.NewForConfig(config)
}

// podsOfNode makes the framework's informers, which see a node's pods and no others.
func podsOfNode(client kubernetes.Interface, name string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
		l.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", name).String()
	}))
}

// podControllerConfig is the usual one with two things changed: PodClient says and deletes
// nothing without the store, and the provider never reports a status (see NotifyPods).
func podControllerConfig(client kubernetes.Interface, mine informers.SharedInformerFactory, p *provider, recorder record.EventRecorder) node.PodControllerConfig {
	// The framework wants these, but they are never started: see SkipDownwardAPIResolution.
	unused := informers.NewSharedInformerFactory(client, 0).Core().V1()
	return node.PodControllerConfig{
		PodClient:         podsOfStore{PodsGetter: client.CoreV1(), provider: p},
		PodInformer:       mine.Core().V1().Pods(),
		Provider:          p,
		EventRecorder:     recorder,
		ConfigMapInformer: unused.ConfigMaps(),
		SecretInformer:    unused.Secrets(),
		ServiceInformer:   unused.Services(),
		// Else the pods that the provider is given, and keeps on disk, would have the
		// values of secrets in them.
		SkipDownwardAPIResolution: true,
	}
}

// registerNode keeps a node object and its lease up to date. The framework's controller
// gives up if the API server is away when it begins.
func registerNode(ctx context.Context, client kubernetes.Interface, o options) error {
	for {
		c, err := node.NewNodeController(node.NewNaiveNodeProvider(), nodeObject(o.node), client.CoreV1().Nodes(),
			node.WithNodeEnableLeaseV1(client.CoordinationV1().Leases(v1.NamespaceNodeLease), node.DefaultLeaseDuration))
		if err != nil {
			return err
		}
		attempt, cancel := context.WithCancel(ctx) // ends what a failed one leaves behind
		err = c.Run(attempt)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		o.log.Warn("node is not registered", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryRegister):
		}
	}
}

func nodeObject(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "virtual-kubelet", v1.LabelHostname: name}},
		Spec: v1.NodeSpec{
			// Only pods that tolerate it are scheduled here.
			Taints: []v1.Taint{{Key: "virtual-kubelet.io/provider", Value: "timetable", Effect: v1.TaintEffectNoSchedule}},
		},
		Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{{
				Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
			}},
		},
	}
}
