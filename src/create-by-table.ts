import { InferenceSession as CommonSession, type InferenceSessionHandler } from 'onnxruntime-common';

/**
 * What the backend makes that onnxruntime-common's table gives for `options`. Rejects with what that package's
 * `InferenceSession.create` rejects with.
 */
export async function createByTable(
  source: string | Uint8Array,
  options: CommonSession.SessionOptions,
): Promise<InferenceSessionHandler> {
  const session =
    typeof source === 'string'
      ? await CommonSession.create(source, options)
      : await CommonSession.create(source, options);
  return (session as unknown as { handler: InferenceSessionHandler }).handler;
}
