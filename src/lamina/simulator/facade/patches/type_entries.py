"""
How lists and mappings of the built-in types are merged: facts of Kubernetes 1.36, one line for each type.

A field has an entry if it is not merged in the default way, or if its type has entries. By default, patches replace
lists and merge mappings. The notation of an entry:

- `name>Type`: the value, or each element of a keyed list, is of this type
- `name=key`: list, merged by this key; `name=key+more`: server-side apply uses more keys; `name=*`: list of scalars
- `name~key`: only strategic merge patches merge the list by this key, server-side apply replaces it
- `name^key`, `name^*`: only server-side apply merges the list
- `!`: server-side apply treats the mapping, or each element of the list, as one value
- `%`: strategic merge patches replace the mapping

The facts are the tags `patchStrategy` and `patchMergeKey` of the types in k8s.io/api, and the schema for server-side
apply in k8s.io/client-go.
"""

from typing import Final

TYPE_ENTRIES: Final[dict[str, str]] = {
    "Affinity": "nodeAffinity>NodeAffinity",
    "AllocatedDeviceStatus": "conditions^type data!",
    "AllocationResult": "nodeSelector!",
    "CSIDriver": "metadata>ObjectMeta spec>CSIDriverSpec",
    "CSIDriverSpec": "volumeLifecycleModes^*",
    "CSINode": "metadata>ObjectMeta spec>CSINodeSpec",
    "CSINodeSpec": "drivers=name",
    "CSIPersistentVolumeSource": (
        "controllerExpandSecretRef! controllerPublishSecretRef! nodeExpandSecretRef! nodePublishSecretRef! "
        "nodeStageSecretRef!"
    ),
    "CSIStorageCapacity": "metadata>ObjectMeta nodeTopology!",
    "CSIVolumeSource": "nodePublishSecretRef!",
    "CephFSPersistentVolumeSource": "secretRef!",
    "CephFSVolumeSource": "secretRef!",
    "CinderPersistentVolumeSource": "secretRef!",
    "CinderVolumeSource": "secretRef!",
    "ClusterRoleBinding": "metadata>ObjectMeta roleRef!",
    "ComponentStatus": "conditions=type metadata>ObjectMeta",
    "Container": (
        "env=name>EnvVar ports=containerPort+protocol resources>ResourceRequirements volumeDevices=devicePath "
        "volumeMounts=mountPath"
    ),
    "ControllerRevision": "data! metadata>ObjectMeta",
    "CoreEvent": "involvedObject! metadata>ObjectMeta related!",
    "CronJob": "metadata>ObjectMeta spec>CronJobSpec",
    "CronJobSpec": "jobTemplate>JobTemplateSpec",
    "DaemonSet": "metadata>ObjectMeta spec>DaemonSetSpec status>DaemonSetStatus",
    "DaemonSetSpec": "selector! template>PodTemplateSpec",
    "DaemonSetStatus": "conditions=type",
    "Deployment": "metadata>ObjectMeta spec>DeploymentSpec status>DeploymentStatus",
    "DeploymentSpec": "selector! template>PodTemplateSpec",
    "DeploymentStatus": "conditions=type",
    "EnvVar": "valueFrom>EnvVarSource",
    "EnvVarSource": "configMapKeyRef! fieldRef! fileKeyRef! resourceFieldRef! secretKeyRef!",
    "EphemeralContainer": (
        "env=name>EnvVar ports=containerPort+protocol resources>ResourceRequirements volumeDevices=devicePath "
        "volumeMounts=mountPath"
    ),
    "EphemeralVolumeSource": "volumeClaimTemplate>PersistentVolumeClaimTemplate",
    "EventsEvent": "metadata>ObjectMeta regarding! related!",
    "FlexPersistentVolumeSource": "secretRef!",
    "FlexVolumeSource": "secretRef!",
    "HorizontalPodAutoscaler": "metadata>ObjectMeta status>HorizontalPodAutoscalerStatus",
    "HorizontalPodAutoscalerStatus": "conditions=type",
    "ISCSIPersistentVolumeSource": "secretRef!",
    "ISCSIVolumeSource": "secretRef!",
    "Ingress": "metadata>ObjectMeta spec>IngressSpec",
    "IngressBackend": "resource! service>IngressServiceBackend",
    "IngressServiceBackend": "port!",
    "IngressSpec": "defaultBackend>IngressBackend",
    "Job": "metadata>ObjectMeta spec>JobSpec status>JobStatus",
    "JobSpec": "selector! template>PodTemplateSpec",
    "JobStatus": "conditions~type uncountedTerminatedPods>UncountedTerminatedPods",
    "JobTemplateSpec": "metadata>ObjectMeta spec>JobSpec",
    "Namespace": "metadata>ObjectMeta status>NamespaceStatus",
    "NamespaceStatus": "conditions=type",
    "NetworkPolicy": "metadata>ObjectMeta spec>NetworkPolicySpec",
    "NetworkPolicySpec": "podSelector!",
    "Node": "metadata>ObjectMeta spec>NodeSpec status>NodeStatus",
    "NodeAffinity": "requiredDuringSchedulingIgnoredDuringExecution!",
    "NodeSpec": "podCIDRs=*",
    "NodeStatus": "addresses=type conditions=type",
    "ObjectMeta": "finalizers=* ownerReferences=uid!",
    "PersistentVolume": "metadata>ObjectMeta spec>PersistentVolumeSpec",
    "PersistentVolumeClaim": "metadata>ObjectMeta spec>PersistentVolumeClaimSpec status>PersistentVolumeClaimStatus",
    "PersistentVolumeClaimSpec": "dataSource! selector!",
    "PersistentVolumeClaimStatus": "conditions=type",
    "PersistentVolumeClaimTemplate": "metadata>ObjectMeta spec>PersistentVolumeClaimSpec",
    "PersistentVolumeSpec": (
        "cephfs>CephFSPersistentVolumeSource cinder>CinderPersistentVolumeSource claimRef! "
        "csi>CSIPersistentVolumeSource flexVolume>FlexPersistentVolumeSource iscsi>ISCSIPersistentVolumeSource "
        "nodeAffinity>VolumeNodeAffinity rbd>RBDPersistentVolumeSource scaleIO>ScaleIOPersistentVolumeSource "
        "storageos>StorageOSPersistentVolumeSource"
    ),
    "Pod": "metadata>ObjectMeta spec>PodSpec status>PodStatus",
    "PodDisruptionBudget": "metadata>ObjectMeta spec>PodDisruptionBudgetSpec status>PodDisruptionBudgetStatus",
    "PodDisruptionBudgetSpec": "selector%!",
    "PodDisruptionBudgetStatus": "conditions=type",
    "PodSpec": (
        "affinity>Affinity containers=name>Container ephemeralContainers=name>EphemeralContainer hostAliases=ip "
        "imagePullSecrets=name! initContainers=name>Container nodeSelector! resourceClaims=name "
        "resources>ResourceRequirements schedulingGates=name "
        "topologySpreadConstraints=topologyKey+whenUnsatisfiable>TopologySpreadConstraint volumes=name>Volume"
    ),
    "PodStatus": "conditions=type hostIPs~ip podIPs=ip resourceClaimStatuses=name resources>ResourceRequirements",
    "PodStatusResult": "metadata>ObjectMeta status>PodStatus",
    "PodTemplate": "metadata>ObjectMeta template>PodTemplateSpec",
    "PodTemplateSpec": "metadata>ObjectMeta spec>PodSpec",
    "RBDPersistentVolumeSource": "secretRef!",
    "RBDVolumeSource": "secretRef!",
    "ReplicaSet": "metadata>ObjectMeta spec>ReplicaSetSpec status>ReplicaSetStatus",
    "ReplicaSetSpec": "selector! template>PodTemplateSpec",
    "ReplicaSetStatus": "conditions=type",
    "ReplicationController": "metadata>ObjectMeta spec>ReplicationControllerSpec status>ReplicationControllerStatus",
    "ReplicationControllerSpec": "selector! template>PodTemplateSpec",
    "ReplicationControllerStatus": "conditions=type",
    "ResourceClaim": "metadata>ObjectMeta status>ResourceClaimStatus",
    "ResourceClaimStatus": (
        "allocation>AllocationResult devices^driver+device+pool+shareID>AllocatedDeviceStatus reservedFor=uid"
    ),
    "ResourceClaimTemplate": "metadata>ObjectMeta spec>ResourceClaimTemplateSpec",
    "ResourceClaimTemplateSpec": "metadata>ObjectMeta",
    "ResourceQuota": "metadata>ObjectMeta spec>ResourceQuotaSpec",
    "ResourceQuotaSpec": "scopeSelector!",
    "ResourceRequirements": "claims^name",
    "ResourceSlice": "metadata>ObjectMeta spec>ResourceSliceSpec",
    "ResourceSliceSpec": "nodeSelector!",
    "RoleBinding": "metadata>ObjectMeta roleRef!",
    "RuntimeClass": "metadata>ObjectMeta scheduling>Scheduling",
    "ScaleIOPersistentVolumeSource": "secretRef!",
    "ScaleIOVolumeSource": "secretRef!",
    "Scheduling": "nodeSelector!",
    "Service": "metadata>ObjectMeta spec>ServiceSpec status>ServiceStatus",
    "ServiceAccount": "metadata>ObjectMeta secrets=name!",
    "ServiceCIDR": "metadata>ObjectMeta status>ServiceCIDRStatus",
    "ServiceCIDRStatus": "conditions=type",
    "ServiceSpec": "ports=port+protocol selector!",
    "ServiceStatus": "conditions=type",
    "StatefulSet": "metadata>ObjectMeta spec>StatefulSetSpec status>StatefulSetStatus",
    "StatefulSetSpec": "selector! template>PodTemplateSpec",
    "StatefulSetStatus": "conditions=type",
    "StorageOSPersistentVolumeSource": "secretRef!",
    "StorageOSVolumeSource": "secretRef!",
    "TopologySpreadConstraint": "labelSelector!",
    "UncountedTerminatedPods": "failed^* succeeded^*",
    "Volume": (
        "cephfs>CephFSVolumeSource cinder>CinderVolumeSource csi>CSIVolumeSource ephemeral>EphemeralVolumeSource "
        "flexVolume>FlexVolumeSource iscsi>ISCSIVolumeSource rbd>RBDVolumeSource scaleIO>ScaleIOVolumeSource "
        "storageos>StorageOSVolumeSource"
    ),
    "VolumeAttachment": "metadata>ObjectMeta spec>VolumeAttachmentSpec",
    "VolumeAttachmentSource": "inlineVolumeSpec>PersistentVolumeSpec",
    "VolumeAttachmentSpec": "source>VolumeAttachmentSource",
    "VolumeNodeAffinity": "required!",
}
"""Entries by type."""
