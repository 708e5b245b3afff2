// A scheduler that binds every pod of its name to a random node.
//
// It stands for the many small schedulers that run in a pod: it finds the API
// server and its token by InClusterConfig only, follows pods and nodes with
// informers, posts a Binding and a core/v1 Event for each pod, and looks at
// neither capacity nor readiness. A pod is queued when it is added, and never
// again: if its binding is refused, it stays pending.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// When the queue is full, the informer waits.
	queueLength = 300
	// How long to wait for a node where there is none yet.
	pause = 100 * time.Millisecond
)

// randomScheduler binds the pods of its queue, one after the other.
type randomScheduler struct {
	name   string
	client kubernetes.Interface
	nodes  corelisters.NodeLister
	queue  chan *corev1.Pod
	random *rand.Rand
}

func main() {
	name := flag.String("scheduler-name", "random-scheduler", "bind the pods with this spec.schedulerName")
	qps := flag.Float64("qps", float64(rest.DefaultQPS), "requests per second; client-go's default is 5")
	seed := flag.Uint64("seed", 0, "draw the same numbers in every run; 0: other numbers in each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *name, float32(*qps), *seed); err != nil {
		log.Fatalf("random-scheduler: %v", err)
	}
}

func run(ctx context.Context, name string, qps float32, seed uint64) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, max(1, int(2*qps))
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if seed == 0 {
		seed = rand.Uint64()
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	scheduler := &randomScheduler{
		name:   name,
		client: client,
		nodes:  factory.Core().V1().Nodes().Lister(),
		queue:  make(chan *corev1.Pod, queueLength),
		random: rand.New(rand.NewPCG(seed, seed)),
	}
	pods := factory.Core().V1().Pods().Informer()
	added := func(object any) {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Spec.NodeName != "" || pod.Spec.SchedulerName != name {
			return
		}
		select {
		case scheduler.queue <- pod:
		case <-ctx.Done():
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: added}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the cache of %v did not sync", kind)
		}
	}
	log.Printf("%s is ready at %s", name, config.Host)
	scheduler.bindAll(ctx)
	return nil
}

// bindAll binds the queued pods until the context ends.
func (s *randomScheduler) bindAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case pod := <-s.queue:
			if err := s.bind(ctx, pod); err != nil && !errors.Is(err, context.Canceled) {
				log.Printf("bind failed pod=%s/%s error=%q", pod.Namespace, pod.Name, err)
			}
		}
	}
}

func (s *randomScheduler) bind(ctx context.Context, pod *corev1.Pod) error {
	node, err := s.choose(ctx)
	if err != nil {
		return err
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		Target:     corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node},
	}
	if err := s.client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	log.Printf("bound pod=%s/%s node=%s", pod.Namespace, pod.Name, node)
	return s.tell(ctx, pod, fmt.Sprintf("Placed pod [%s/%s] on %s", pod.Namespace, pod.Name, node))
}

// choose draws a node; it waits until there is one.
func (s *randomScheduler) choose(ctx context.Context) (string, error) {
	for {
		nodes, err := s.nodes.List(labels.Everything())
		if err != nil {
			return "", err
		}
		if len(nodes) > 0 {
			// The lister has no order; with a seed, the same nodes give the same draw.
			slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
			return nodes[s.random.IntN(len(nodes))].Name, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause):
		}
	}
}

// tell posts an event about the pod.
func (s *randomScheduler) tell(ctx context.Context, pod *corev1.Pod, message string) error {
	now := metav1.NewTime(time.Now().UTC())
	host, _ := os.Hostname()
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "-"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Reason:         "Scheduled",
		Message:        message,
		Type:           corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: s.name, Host: host},
		FirstTimestamp: now,
		LastTimestamp:  now,
		Count:          1,
	}
	_, err := s.client.CoreV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}
