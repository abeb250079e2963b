import { createBatcher, InferenceSession, Tensor } from 'infernode';
import type { InferenceValue, TypedTensor } from 'infernode';
import type { Bert } from './bert.mjs';

const session = await InferenceSession.create<Bert>('model.onnx', { intraOpNumThreads: 1 });
const plain: InferenceSession = session.untyped;
createBatcher(session.untyped);

declare const dims: number[];
const input_ids = new Tensor('int64', new BigInt64Array(4), dims);
const pixels = new Tensor('float32', new Float32Array(150528), [1, 3, 224, 224] as const);
const free = new Tensor('float32', [1]);
const feeds = { input_ids, pixels, 'any rank': free };

// Names and types of inputs.
const results = await session.run(feeds);
await session.run({ ...feeds, scale: free });
await session.run({ ...feeds, scale: undefined });
await session.run({ input_ids, pixels }); // error TS2345
await session.run({ ...feeds, pixel: pixels }); // error TS2322
await session.run({ ...feeds, input_ids: free }); // error TS2322
await session.run({ ...feeds, input_ids: session.allocate('int64', [1, 4]) });

// Dims, where the tensor's type has them.
await session.run({ ...feeds, pixels: new Tensor('float32', new Float32Array(1), [8, 3, 224, 224] as const) });
await session.run({ ...feeds, pixels: new Tensor('float32', new Float32Array(1), [1, 4, 224, 224] as const) }); // error TS2322
await session.run({ ...feeds, pixels: new Tensor('float32', new Float32Array(1), [3, 224, 224] as const) }); // error TS2322
await session.run({ ...feeds, pixels: new Tensor('float32', new Float32Array(1), [1, 3, 224, 224]) });
await session.run({ ...feeds, pixels: results.logits }); // error TS2322
await session.run({ ...feeds, scale: new Tensor('float32', [1], [2] as const) }); // error TS2322

// Names, types and dims of outputs.
const logits: TypedTensor<'float32'> = results.logits;
const [batch, classes] = results.logits.dims;
const thousand: 1000 = classes;
const any: number = batch;
const one: 1 = batch; // error TS2322
const text: readonly string[] = results.words.data;
const list: InferenceValue = results.list;
void results.logit; // error TS2551

// Fetches.
const some = await session.run(feeds, ['logits']);
void some.logits.dims[1].toFixed();
void some.words; // error TS2339
await session.run(feeds, ['logit']); // error TS2769
const sync = InferenceSession.createSync<Bert>('model.onnx').runSync(feeds, ['words'], { timeout: 5 });

// A batcher has the types of its session.
const batcher = createBatcher(session, { maxBatch: 8 });
const answer = await batcher.run(feeds, { timeout: 5 });
void answer.logits.dims[1].toFixed();
void answer.logit; // error TS2551
await batcher.run({ ...feeds, input_ids: free }); // error TS2322
await batcher.run({ input_ids, pixels }); // error TS2345
const logitsAlone = createBatcher(session, { outputs: ['logits'], padding: { input_ids: { axis: 1 } } });
void (await logitsAlone.run(feeds)).words; // error TS2339
createBatcher(session, { outputs: ['logit'] }); // error TS2769

// Dims that are no tuple leave tensors as they were.
let tensor = new Tensor('float32', new Float32Array(6), [1, 6]);
tensor = new Tensor('float32', new Float32Array(6), [2, 3, 1]);
void [plain, logits, thousand, any, one, text, list, sync.words, tensor];
