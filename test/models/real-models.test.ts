import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { readPicture } from '../../examples/ocr/image.mjs';
import { TextReader } from '../../examples/ocr/reader.mjs';
import { fetchModel } from '../../bench/models/fetch-models.mjs';
import { engineName } from '../../scripts/lib/engine.mjs';
import { peerFolder, peerSaturates } from '../../scripts/lib/peer.mjs';
import { remoteEngine } from '../../scripts/lib/remote-engine.mjs';
import { eachField, text } from '../conformance/lib/protobuf.mjs';
import { available } from '../fixtures/available.js';
import { relativeDistance, type Values, withEngine, worstError } from './agreement.js';
import { speech } from './pipelines/audio.mjs';
import { chord, notesIn } from './pipelines/basic-pitch.mjs';
import { classifyStrokes } from './pipelines/detypify.mjs';
import { fileType } from './pipelines/magika.mjs';
import { cosine, loadEmbedder } from './pipelines/minilm.mjs';
import { speechV4, speechV5 } from './pipelines/silero.mjs';
import { speechEmbeddings } from './pipelines/wake-word.mjs';
import { loadWhisper } from './pipelines/whisper.mjs';

const minutes = 60_000;
const float32 = 1e-4;
const int8 = 2e-2;
/** Where the peer's sums of int8 weights saturate, in all of its levels. */
const saturated = 0.2;

const projectFile = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

interface Recording<Answer> {
  answer: Answer;
  /** Each run of a session, in order. */
  runs: { model: string; inputs: Values; outputs: Values }[];
}

async function record<Answer>(engine: string, program: (ort: any) => Promise<Answer>): Promise<Recording<Answer>> {
  return withEngine(engine, {}, async (process) => {
    const runs: Recording<Answer>['runs'] = [];
    const ort = remoteEngine(process, (model, inputs, outputs) =>
      runs.push({ model, inputs: inputs as Values, outputs: outputs as Values }),
    );
    return { answer: await program(ort), runs };
  });
}

/** The outputs that an engine gives for the inputs of runs recorded elsewhere. */
async function replay(
  engine: string,
  runs: Recording<unknown>['runs'],
  options: object,
): Promise<Recording<unknown>['runs']> {
  return withEngine(engine, {}, async (process) => {
    const sessions = new Map<string, number>();
    const replayed: Recording<unknown>['runs'] = [];
    for (const { model, inputs, outputs: recorded } of runs) {
      if (!sessions.has(model)) sessions.set(model, (await process.create(model, options)).id);
      const outputs = await process.run(sessions.get(model)!, inputs, Object.keys(recorded));
      replayed.push({ model, inputs, outputs: outputs as Values });
    }
    return replayed;
  });
}

/**
 * Holds the outputs of `ours` against those of the peer for the same inputs. Where weights and activations are int8, one
 * activation that rounds the other way in an early layer moves all later ones, and two levels of the peer lie further apart than
 * the tolerance themselves: there, our outputs as a whole may lie no further from the peer's than a quarter more than those do.
 */
async function expectAgreement(tolerance: number, ours: Recording<unknown>['runs'], peers: Recording<unknown>['runs']) {
  const chaotic = new Map<number, number>();
  peers.forEach(({ model, outputs }, i) => {
    const { error, output } = worstError(ours[i]!.outputs, outputs);
    if (tolerance === int8 && error > tolerance && error < Infinity) chaotic.set(i, error);
    else expect(error, `run ${i + 1} (${model}), output ${output}`).toBeLessThanOrEqual(tolerance);
  });
  if (chaotic.size === 0) return;
  const unoptimized = await replay('peer', peers, { logSeverityLevel: 3, graphOptimizationLevel: 'disabled' });
  for (const [i, error] of chaotic) {
    const { model, outputs } = peers[i]!;
    const spread = worstError(unoptimized[i]!.outputs, outputs, relativeDistance).error;
    const bound = Math.max(tolerance, 1.25 * spread, peerSaturates ? saturated : 0);
    const distance = worstError(ours[i]!.outputs, outputs, relativeDistance).error;
    expect(distance, `run ${i + 1} (${model}), error ${error}`).toBeLessThanOrEqual(bound);
  }
}

/**
 * Runs a program on both engines for two inputs: both must give the same answer, for each run of the peer's sessions ours must
 * give the same outputs from the same inputs, and the two inputs must give different outputs.
 * @returns what the program answered for each input
 */
async function sameAsPeer<Input, Answer>(
  tolerance: number,
  inputs: [Input, Input],
  program: (ort: any, input: Input) => Promise<Answer>,
  sameAnswer: (ours: Answer, peers: Answer, input: Input) => void | Promise<void> = (ours, peers) =>
    expect(ours).toEqual(peers),
): Promise<[Answer, Answer]> {
  const recordings: Recording<Answer>[] = [];
  for (const input of inputs) {
    const peer = await record('peer', (ort) => program(ort, input));
    const ours = await record(engineName(), (ort) => program(ort, input));
    expect(ours.runs.length).toBe(peer.runs.length);
    expect(ours.runs.length).toBeGreaterThan(0);
    const replayed = await replay(engineName(), peer.runs, { logSeverityLevel: 3 });
    await expectAgreement(tolerance, replayed, peer.runs);
    await sameAnswer(ours.answer, peer.answer, input);
    recordings.push(ours);
  }
  const [first, second] = recordings as [Recording<Answer>, Recording<Answer>];
  expect(worstError(second.runs[0]!.outputs, first.runs[0]!.outputs).error).toBeGreaterThan(tolerance);
  return [first.answer, second.answer];
}

/** The characters that a PP-OCR recogniser of version 5 and up carries in its metadata. */
function charactersIn(model: string): string[] {
  const entries = new Map<string, string>();
  eachField(readFileSync(model), (field: number, value: any) => {
    if (field !== 14) return;
    const pair = ['', ''];
    eachField(value, (part: number, bytes: any) => (pair[part - 1] = text(bytes)));
    entries.set(pair[0]!, pair[1]!);
  });
  return entries.get('character')!.replace(/\n$/, '').split('\n');
}

const numbersClose = (tolerance: number) => (ours: number[], peers: number[]) => {
  expect(ours.length).toBe(peers.length);
  ours.forEach((value, i) => expect(Math.abs(value - peers[i]!)).toBeLessThanOrEqual(tolerance));
};

beforeAll(async () => {
  // Installs the peer once; a test that needs it reports why where that fails.
  await peerFolder().catch(() => undefined);
}, 5 * minutes);

const files = (context: any, ...names: string[]) =>
  available(context, 'onnxruntime-node', peerFolder).then(() =>
    available(context, names.join(', '), () => Promise.all(names.map((name) => fetchModel(name) as Promise<string>))),
  );

describe('reading text', () => {
  const expected = readFileSync(projectFile('examples/ocr/expected.txt'), 'utf8').trim().split('\n');
  const sameLines = (ours: any[], peers: any[]) => {
    expect(ours.map(({ text, corners }) => ({ text, corners }))).toEqual(
      peers.map(({ text, corners }) => ({ text, corners })),
    );
  };
  const readWith = (models: object) => async (ort: any, path: string) => {
    const reader = await TextReader.load(ort, models as any, { logSeverityLevel: 3 });
    const lines = await reader.read(readPicture(path));
    await reader.release();
    return lines;
  };

  it(
    'PP-OCRv4 reads the picture of the example',
    async (context) => {
      const [detector, recogniser, classifier, characters, page] = await files(
        context,
        ...['ppocr-v4-det', 'ppocr-v4-rec', 'ppocr-cls', 'ppocr-v4-keys', 'picture-page'],
      );
      const pictures: [string, string] = [projectFile('examples/ocr/picture.png'), page!];
      const models = { detector, recogniser, classifier, characters };
      // Computed in float64, the detector's probabilities on the bill are 9e-5 from the peer's, 3.5e-5 from this engine's.
      const [bill, segmentation] = await sameAsPeer(2 * float32, pictures, readWith(models), sameLines);
      expect(bill.map(({ text }) => text)).toEqual(expected);
      expect(segmentation[0]!.text).toBe('Region-based segmentation');
    },
    5 * minutes,
  );

  it(
    'PP-OCRv6 reads it too',
    async (context) => {
      const [detector, recogniser, classifier, page] = await files(
        context,
        ...['ppocr-v6-det', 'ppocr-v6-rec', 'ppocr-v6-cls', 'picture-page'],
      );
      const pictures: [string, string] = [projectFile('examples/ocr/picture.png'), page!];
      const models = { detector, recogniser, classifier, characters: charactersIn(recogniser!) };
      const [bill] = await sameAsPeer(float32, pictures, readWith(models), sameLines);
      expect(bill.map(({ text }) => text)).toEqual(expected);
    },
    10 * minutes,
  );
});

describe('hearing speech', () => {
  const options = { logSeverityLevel: 3 };

  type Detector = (ort: any, model: string, samples: Float32Array, options: object) => Promise<number[]>;
  it.for<[string, Detector]>([
    ['silero-v4', speechV4],
    ['silero-v5', speechV5],
  ])('%s tells speech from noise', { timeout: 2 * minutes }, async ([name, program], context) => {
    const [model, center, noise] = await files(context, name, 'speech-front-center', 'speech-noise');
    const sounds: [Float32Array, Float32Array] = [speech(center), speech(noise)];
    const run = (ort: any, samples: Float32Array) => program(ort, model!, samples, options);
    const [voice, hiss] = await sameAsPeer(float32, sounds, run, numbersClose(1e-3));
    expect(Math.max(...voice)).toBeGreaterThan(0.9);
    expect(Math.max(...hiss)).toBeLessThan(0.5);
  });

  it(
    'Whisper-tiny with int8 weights writes down what is said',
    async (context) => {
      const [encoder, decoder, tokenizer, ...sounds] = await files(
        context,
        ...['whisper-encoder', 'whisper-decoder', 'whisper-tokenizer', 'speech-front-center', 'speech-side-right'],
      );
      const transcribeAt = (graphOptimizationLevel: string) => async (ort: any, samples: Float32Array) => {
        const files = { encoder, decoder, tokenizer };
        const whisper = await loadWhisper(ort, files, { ...options, graphOptimizationLevel });
        const { text } = await whisper.transcribe(samples);
        await whisper.release();
        return text;
      };
      // Where two tokens are as likely, the peer's own levels write different text: either is right.
      const oneOfPeers = async (ours: string, peers: string, samples: Float32Array) => {
        const unoptimized = await record('peer', (ort) => transcribeAt('disabled')(ort, samples));
        expect([peers, unoptimized.answer]).toContain(ours);
      };
      const inputs: [Float32Array, Float32Array] = [speech(sounds[0]), speech(sounds[1])];
      const [center, right] = await sameAsPeer(int8, inputs, transcribeAt('all'), oneOfPeers);
      expect(center).toBe('Front Center.');
      expect(right.toLowerCase()).toMatch(/^side[.,] right\.$/);
    },
    5 * minutes,
  );

  it(
    'the wake-word front end makes the same spectrogram and embeddings',
    async (context) => {
      const [melspectrogram, embedding, center, left] = await files(
        context,
        ...['melspectrogram', 'speech-embedding', 'speech-front-center', 'speech-rear-left'],
      );
      const run = (ort: any, samples: Float32Array) =>
        speechEmbeddings(ort, { melspectrogram, embedding }, samples, options).then((list) => list.length);
      const counts = await sameAsPeer(float32, [speech(center), speech(left)], run);
      expect(Math.min(...counts)).toBeGreaterThan(5);
    },
    2 * minutes,
  );

  it(
    'basic-pitch hears the notes of a chord',
    async (context) => {
      const [model] = await files(context, 'basic-pitch');
      const run = (ort: any, samples: Float32Array) => notesIn(ort, model, samples, options) as Promise<number[]>;
      const [major, octave] = await sameAsPeer(float32, [chord([60, 64, 67]), chord([57, 69])], run);
      expect(major).toEqual(expect.arrayContaining([60, 64, 67]));
      expect(octave).toEqual([57, 69]);
    },
    2 * minutes,
  );
});

describe('telling kinds apart', () => {
  const options = { logSeverityLevel: 3 };

  it(
    'detypify names hand-drawn symbols',
    async (context) => {
      const [model, labels] = await files(context, 'detypify', 'detypify-labels');
      const arrow = [
        [[0, 0], [100, 0]],
        [[75, -20], [100, 0], [75, 20]],
      ]; // prettier-ignore
      const triangle = [[[50, 0], [0, 90], [100, 90], [50, 0]]]; // prettier-ignore
      const run = (ort: any, strokes: number[][][]) => classifyStrokes(ort, { model, labels }, strokes, options);
      expect(await sameAsPeer(float32, [arrow, triangle], run)).toEqual(['→', 'Δ']);
    },
    2 * minutes,
  );

  it(
    'magika names the types of files',
    async (context) => {
      const [model, config] = await files(context, 'magika', 'magika-config');
      const inputs: [Buffer, Buffer] = [
        readFileSync(projectFile('test/generators/make-conformance.py')),
        readFileSync(projectFile('examples/ocr/picture.png')),
      ];
      const run = (ort: any, bytes: Buffer) =>
        fileType(ort, { model, config }, bytes, options).then(({ label }) => label);
      expect(await sameAsPeer(float32, inputs, run)).toEqual(['python', 'png']);
    },
    2 * minutes,
  );

  it(
    'MiniLM with int8 weights puts like sentences close together',
    async (context) => {
      const [model, tokenizer] = await files(context, 'minilm-int8', 'minilm-tokenizer');
      const run = async (ort: any, texts: string[]) => {
        const embedder = await loadEmbedder(ort, { model, tokenizer }, options);
        const vectors = (await embedder.embed(texts)) as number[][];
        await embedder.release();
        return [cosine(vectors[0], vectors[1]), cosine(vectors[0], vectors[2])];
      };
      const animals = [
        'A cat sleeps on the sofa.',
        'A kitten naps on the couch.',
        'Interest rates rose by half a percent.',
      ];
      const weather = [
        'It rains all day in Bergen.',
        'Wet weather in Norway since the morning',
        'The recipe asks for two eggs.',
      ];
      const similarities = await sameAsPeer(int8, [animals, weather], run, numbersClose(int8));
      for (const [alike, unlike] of similarities) expect(alike!).toBeGreaterThan(unlike! + 0.3);
    },
    2 * minutes,
  );
});
