#!/usr/bin/env bash
# A scheduler in bash: reads pods and nodes with kubectl, and binds with curl. It polls, and knows nothing of resources.
# Usage: bash_scheduler.sh SERVER; KUBECTL names kubectl, KUBECONFIG the configuration for the calls without --server.
set -u
server=$1
name=bash-scheduler
kubectl=${KUBECTL:-kubectl}
turn=0
while true; do
    selector="status.phase==Pending,spec.schedulerName==$name,spec.nodeName=="
    pods=$("$kubectl" --server "$server" get pods --field-selector="$selector" --output jsonpath='{.items..metadata.name}')
    if [ -n "$pods" ]; then
        # Without --server: it reads the kubeconfig.
        read -r -a nodes <<<"$("$kubectl" get nodes --output jsonpath='{.items..metadata.name}')"
        for pod in $pods; do
            node=${nodes[$((turn % ${#nodes[@]}))]}
            turn=$((turn + 1))
            body="{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"$pod\"},\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"$node\"}}"
            curl --fail --silent --output /dev/null --header "Content-Type: application/json" --request POST \
                --data "$body" "$server/api/v1/namespaces/default/pods/$pod/binding/"
        done
    fi
    sleep 0.1
done
