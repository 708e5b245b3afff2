// A scheduler extender that refuses and prefers nodes by their labels, and
// binds pods.
//
// It stands for the extenders that other vendors write in Go: it speaks the
// protocol with kube-scheduler's own types, and decodes and encodes them with
// Go's JSON. With the prefix power.example, these labels of a node count:
//
//	power.example/refuse=now       refused (FailedNodes)
//	power.example/refuse=for-good  refused (FailedAndUnresolvableNodes)
//	power.example/score=7          preferred; 0 to 10, 0 without the label
//
// Every call is one line of JSON on standard output.
package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	extender "k8s.io/kube-scheduler/extender/v1"
)

const (
	refusedNow     = "node(s) were refused by %s"
	refusedForGood = "node(s) were refused by %s for good"
)

// call is one call, as it is printed.
type call struct {
	Verb   string   `json:"verb"`
	Pod    string   `json:"pod"`
	Nodes  []string `json:"nodes"`
	Whole  bool     `json:"whole"`
	Passed []string `json:"passed,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// labelExtender answers from the labels of nodes.
type labelExtender struct {
	prefix string
	client kubernetes.Interface
	print  *json.Encoder
	lock   sync.Mutex
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8888", "address to listen on")
	prefix := flag.String("prefix", "power.example", "prefix of the labels that count")
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server, for nodes that are sent by name and for bind")
	cert := flag.String("cert", "", "certificate; serve HTTPS")
	key := flag.String("key", "", "key of the certificate")
	clientCA := flag.String("client-ca", "", "reject clients without a certificate of this authority")
	flag.Parse()
	if err := serve(*listen, *prefix, *kubeconfig, *cert, *key, *clientCA); err != nil {
		log.Fatalf("foreign-extender: %v", err)
	}
}

func serve(listen, prefix, kubeconfig, cert, key, clientCA string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ours := &labelExtender{prefix: prefix, client: client, print: json.NewEncoder(os.Stdout)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /filter", answer(ours.filter))
	mux.HandleFunc("POST /prioritize", answer(ours.prioritize))
	mux.HandleFunc("POST /bind", answer(ours.bind))
	server := &http.Server{Addr: listen, Handler: mux}
	if cert == "" {
		return server.ListenAndServe()
	}
	if clientCA != "" {
		data, err := os.ReadFile(clientCA)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return fmt.Errorf("%s contains no certificate", clientCA)
		}
		server.TLSConfig = &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	}
	return server.ListenAndServeTLS(cert, key)
}

// answer decodes a request, calls a verb and encodes its result.
func answer[Args, Result any](verb func(context.Context, *Args) Result) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		var args Args
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(writer).Encode(verb(request.Context(), &args)); err != nil {
			log.Printf("the client is gone: %v", err)
		}
	}
}

func (e *labelExtender) filter(ctx context.Context, args *extender.ExtenderArgs) *extender.ExtenderFilterResult {
	told := call{Verb: "filter", Pod: args.Pod.Name, Whole: args.Nodes != nil}
	nodes, err := e.nodes(ctx, args)
	if err != nil {
		told.Error = err.Error()
		e.tell(told)
		return &extender.ExtenderFilterResult{Error: told.Error}
	}
	result := &extender.ExtenderFilterResult{
		FailedNodes:                extender.FailedNodesMap{},
		FailedAndUnresolvableNodes: extender.FailedNodesMap{},
	}
	var passed []corev1.Node
	for _, node := range nodes {
		told.Nodes = append(told.Nodes, node.Name)
		switch node.Labels[e.prefix+"/refuse"] {
		case "now":
			result.FailedNodes[node.Name] = fmt.Sprintf(refusedNow, e.prefix)
		case "for-good":
			result.FailedAndUnresolvableNodes[node.Name] = fmt.Sprintf(refusedForGood, e.prefix)
		default:
			passed = append(passed, node)
			told.Passed = append(told.Passed, node.Name)
		}
	}
	if told.Whole {
		result.Nodes = &corev1.NodeList{Items: passed}
	} else {
		names := append([]string{}, told.Passed...)
		result.NodeNames = &names
	}
	e.tell(told)
	return result
}

func (e *labelExtender) prioritize(ctx context.Context, args *extender.ExtenderArgs) *extender.HostPriorityList {
	told := call{Verb: "prioritize", Pod: args.Pod.Name, Whole: args.Nodes != nil}
	nodes, err := e.nodes(ctx, args)
	if err != nil {
		told.Error = err.Error()
	}
	result := extender.HostPriorityList{}
	for _, node := range nodes {
		told.Nodes = append(told.Nodes, node.Name)
		score, err := strconv.ParseInt(cmp.Or(node.Labels[e.prefix+"/score"], "0"), 10, 64)
		if err != nil {
			told.Error = err.Error()
		}
		score = min(max(score, extender.MinExtenderPriority), extender.MaxExtenderPriority)
		result = append(result, extender.HostPriority{Host: node.Name, Score: score})
	}
	e.tell(told)
	return &result
}

// bind binds a pod, with an annotation that says so.
func (e *labelExtender) bind(ctx context.Context, args *extender.ExtenderBindingArgs) *extender.ExtenderBindingResult {
	told := call{Verb: "bind", Pod: args.PodName, Nodes: []string{args.Node}}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   args.PodNamespace,
			Name:        args.PodName,
			UID:         args.PodUID,
			Annotations: map[string]string{e.prefix + "/bound": "true"},
		},
		Target: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: args.Node},
	}
	result := &extender.ExtenderBindingResult{}
	if err := e.client.CoreV1().Pods(args.PodNamespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		told.Error, result.Error = err.Error(), err.Error()
	}
	e.tell(told)
	return result
}

// nodes returns the nodes of a request; those sent by name are read from the API server.
func (e *labelExtender) nodes(ctx context.Context, args *extender.ExtenderArgs) ([]corev1.Node, error) {
	if args.Nodes != nil {
		return args.Nodes.Items, nil
	}
	if args.NodeNames == nil {
		return nil, errors.New("the request has neither nodes nor names of nodes")
	}
	all, err := e.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var found []corev1.Node
	for _, node := range all.Items {
		if slices.Contains(*args.NodeNames, node.Name) {
			found = append(found, node)
		}
	}
	return found, nil
}

// tell prints a call; calls arrive at the same time.
func (e *labelExtender) tell(told call) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if err := e.print.Encode(told); err != nil {
		log.Printf("a call is not printed: %v", err)
	}
}
