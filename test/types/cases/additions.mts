import { createBatcher, env, InferenceSession, Tensor } from 'infernode';
import type { LoadProgress, LogMessage, SessionGraph, TypedTensor } from 'infernode';

// Sources, progress and messages.
const session = await InferenceSession.create(new URL('https://localhost/model.onnx'), {
  onProgress: ({ phase, loaded, total }: LoadProgress) => void [phase, loaded + (total ?? 0)],
  onLog: ({ severity, message, logId }: LogMessage) => void `${severity} ${message} ${logId}`,
});
await InferenceSession.create(new Blob([]));
await InferenceSession.create(await fetch('https://localhost/model.onnx'));
await InferenceSession.create('model.onnx', { onLog: 'stderr' }); // error TS2769
InferenceSession.createSync(new URL('file:///model.onnx'));
InferenceSession.createSync(new Blob([])); // error TS2769

// Settings of the process.
env.onLog = (message) => void `${message.severity} ${message.category}`;
env.onLog = undefined;
env.onLog = 3; // error TS2322
env.ownTensorData = true;
env.ownTensorData = 'yes'; // error TS2322
env.maxConcurrentRuns = 4;

// Batching.
await using batcher = createBatcher(session, { maxBatch: 8, padding: { ids: { axis: 1, value: 0 } } });
const { y } = await batcher.run({ ids: new Tensor('int64', [1n], [1, 1]) }, { timeout: 5 });
createBatcher(session, { maxBatch: '8' }); // error TS2769

// Introspection.
await session.warmUp({ ids: [1, 8] }, { batch: 4 });
await session.warmUp({ ids: '1x8' }); // error TS2322
const graph: SessionGraph = session.graph();
const names: (string | null)[] = graph.nodes.flatMap(({ inputs }) => [...inputs]);
const bytes: number = graph.memory.weightBytes;
const text: string = session.describe();

// Images.
const image = { data: new Uint8ClampedArray(4), width: 1, height: 1 };
const floats: TypedTensor<'float32'> = await Tensor.fromImage(image, { resizedWidth: 2, fit: 'cover' });
const small: TypedTensor<'uint8'> = await Tensor.fromImage('photo.jpg', { dataType: 'uint8' });
await Tensor.fromImage(image, { tensorFormat: 'CMYK' }); // error TS2769
const batch: TypedTensor<'uint8'> = await Tensor.fromImage([image, 'photo.jpg', new Blob([])], { dataType: 'uint8' });
batch.toImageData({ normalize: { mean: [0.5, 0.5, 0.5], std: 0.5 } });
batch.toImageData({ normalize: { mean: '0.5', std: 0.5 } }); // error TS2322
void [y, names, bytes, text, floats, small];
