// The story with the JavaScript client, @kubernetes/client-node: `node _client_javascript.mjs KUBECONFIG FOLDER`.
// FOLDER holds node_modules.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

const [kubeconfig, folder] = process.argv.slice(2);
const found = createRequire(folder + '/').resolve('@kubernetes/client-node');
const k8s = await import(pathToFileURL(found).href);

const SECONDS = 60;
const NAMESPACE = 'story';
const POD = 'web';
const NODE = 'node-1';
const NODES = ['node-0', 'node-1', 'node-2'];
const POD_OBJECT = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: POD, namespace: NAMESPACE, labels: { app: POD } },
  spec: {
    schedulerName: 'story',
    terminationGracePeriodSeconds: 5,
    containers: [{ name: 'main', image: 'nginx:1.27', resources: { requests: { cpu: '100m', memory: '64Mi' } } }],
  },
};
const BINDING = {
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name: POD, namespace: NAMESPACE },
  target: { apiVersion: 'v1', kind: 'Node', name: NODE },
};
const CUSTOM_TYPE = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.story.example' },
  spec: {
    group: 'story.example',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

async function step(name, action) {
  try {
    await action();
  } catch (error) {
    console.log(`    FAILED ${name}: ${String(error.stack ?? error).slice(0, 1200)}`);
    process.exit(1);
  }
  console.log(`    ${name}`);
}

function expect(what, found, wanted) {
  if (!isDeepStrictEqual(found, wanted)) {
    throw new Error(`${what} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
  }
}

async function until(what, ask) {
  const end = Date.now() + SECONDS * 1000;
  while (!(await ask())) {
    if (Date.now() > end) throw new Error(`${what}: not within ${SECONDS} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function fails(what, code, action) {
  try {
    await action();
  } catch (error) {
    expect(what, error.code ?? error.statusCode, code);
    return;
  }
  throw new Error(`${what} succeeds, and does not fail with ${code}`);
}

const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
// The client refuses plain HTTP, even on loopback, unless the kubeconfig says that there is no certificate to check.
for (const cluster of config.clusters) if (cluster.server.startsWith('http:')) cluster.skipTLSVerify = true;
const core = config.makeApiClient(k8s.CoreV1Api);
const names = (list) => list.items.map((one) => one.metadata.name);
const pod = () => core.readNamespacedPod({ name: POD, namespace: NAMESPACE });
const patched = (body, type) =>
  core.patchNamespacedPod({ name: POD, namespace: NAMESPACE, body }, k8s.setHeaderOptions('Content-Type', type));

await step('lists nodes', async () => expect('nodes', names(await core.listNode()), NODES));
await step('creates a namespace', () => core.createNamespace({ body: { metadata: { name: NAMESPACE } } }));

const watched = [];
const list = () => core.listNamespacedPod({ namespace: NAMESPACE });
// From the version of a list on, a watch misses nothing, however late it begins.
const { resourceVersion } = (await list()).metadata;
const watching = await new k8s.Watch(config).watch(
  `/api/v1/namespaces/${NAMESPACE}/pods`,
  { resourceVersion },
  (type, object) => watched.push(`${type} ${object.status?.phase} ${object.spec?.nodeName ?? ''}`.trim()),
  () => {},
);
const heard = [];
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${NAMESPACE}/pods`, list);
for (const kind of ['add', 'update', 'delete']) {
  informer.on(kind, (object) => heard.push(`${kind} ${object.status.phase} ${object.spec.nodeName ?? ''}`.trim()));
}
await step('starts an informer', () => informer.start());

await step('creates a pod', async () => {
  const made = await core.createNamespacedPod({ namespace: NAMESPACE, body: POD_OBJECT });
  expect('phase', made.status.phase, 'Pending');
  await fails('create again', 409, () => core.createNamespacedPod({ namespace: NAMESPACE, body: POD_OBJECT }));
});
await step('binds it', async () => {
  await core.createNamespacedPodBinding({ name: POD, namespace: NAMESPACE, body: BINDING });
  expect('node', (await pod()).spec.nodeName, NODE);
});
await step('it runs', () => until('Running', async () => (await pod()).status.phase === 'Running'));
await step('patches labels in every form', async () => {
  await patched([{ op: 'add', path: '/metadata/labels/a', value: '1' }], k8s.PatchStrategy.JsonPatch);
  await patched({ metadata: { labels: { b: '1' } } }, k8s.PatchStrategy.MergePatch);
  await patched({ metadata: { labels: { c: '1' } } }, k8s.PatchStrategy.StrategicMergePatch);
  expect('labels', (await pod()).metadata.labels, { app: POD, a: '1', b: '1', c: '1' });
});
await step('selects by label', async () =>
  expect('pods', names(await core.listPodForAllNamespaces({ labelSelector: 'a=1' })), [POD]),
);
await step('deletes it', async () => {
  await core.deleteNamespacedPod({ name: POD, namespace: NAMESPACE });
  await until('gone', async () => (await list()).items.length === 0);
  await fails('read', 404, pod);
});
await step('the watch saw it come, run and go', async () => {
  await until('DELETED', () => watched.some((one) => one.startsWith('DELETED')));
  for (const one of ['ADDED Pending', `MODIFIED Running ${NODE}`]) expect(one, watched.includes(one), true);
  watching.abort();
});
await step('the informer saw it come, run and go', async () => {
  await until('delete', () => heard.some((one) => one.startsWith('delete')));
  for (const one of ['add Pending', `update Running ${NODE}`]) expect(`${one} in ${heard}`, heard.includes(one), true);
  await informer.stop();
});

const objects = k8s.KubernetesObjectApi.makeApiClient(config);
await step('creates a deployment and scales it', async () => {
  const template = { metadata: { labels: { app: 'shop' } }, spec: { containers: [{ name: 'main', image: 'nginx:1.27' }] } };
  const selector = { matchLabels: { app: 'shop' } };
  const metadata = { name: 'shop', namespace: NAMESPACE };
  const shop = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { replicas: 2, selector, template } };
  await objects.create(shop);
  const apps = config.makeApiClient(k8s.AppsV1Api);
  const body = { metadata, spec: { replicas: 3 } };
  await apps.replaceNamespacedDeploymentScale({ name: 'shop', namespace: NAMESPACE, body });
  await until('3 ready', async () => (await objects.read(shop)).status.readyReplicas === 3);
  await objects.delete(shop);
});
await step('defines a resource and uses it', async () => {
  await objects.create(CUSTOM_TYPE);
  const widget = {
    apiVersion: 'story.example/v1',
    kind: 'Widget',
    metadata: { name: 'w', namespace: NAMESPACE },
    spec: { size: 1 },
  };
  await objects.create(widget);
  await objects.patch({ ...widget, spec: { size: 2 } }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
  expect('size', (await objects.read(widget)).spec.size, 2);
  await objects.delete(widget);
  await fails('read', 404, () => objects.read(widget));
  await objects.delete(CUSTOM_TYPE);
});
await step('deletes the namespace', async () => {
  await core.deleteNamespace({ name: NAMESPACE });
  await until('gone', async () => !names(await core.listNamespace()).includes(NAMESPACE));
});
process.exit(0);
