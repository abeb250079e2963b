import type { Tensor, TypedTensor } from 'onnxruntime-common';

import type { EngineTensor } from './tensor/engine-tensor.js';
import type { InferenceValue } from './tensor/tensor-types.js';

/** A tensor of a model: `dims` are numbers, names of those that are free ('' without one), or null where any rank is. */
export interface ModelTensor<T extends Tensor.Type, D extends readonly (number | string)[] | null> {
  /** The element type. */
  readonly type: T;
  /** The shape. */
  readonly dims: D;
}

/** A sequence, a map, an optional or a sparse tensor of a model. */
export interface ModelValue {
  /** Such a value has no element type of its own. */
  readonly type?: undefined;
}

/** What a model takes and gives, as `infernode types` writes it. */
export interface ModelTypes {
  /** Inputs that must be fed: a ModelTensor or ModelValue by name. */
  readonly inputs: object;
  /** Inputs with a default in the model, likewise. */
  readonly optionalInputs: object;
  /** Outputs, likewise. */
  readonly outputs: object;
}

/** Dims as a tensor has them: a free one is any number. */
type DimsOf<D> = D extends readonly unknown[]
  ? { readonly [I in keyof D]: D[I] extends number ? D[I] : number }
  : readonly number[];

/** Whether the dims of a tensor, as far as its type tells them, are those of the model. */
type Fits<G, D> = G extends readonly number[]
  ? D extends readonly unknown[]
    ? number extends G['length']
      ? true
      : G['length'] extends D['length']
        ? false extends { [I in keyof D]: I extends keyof G ? DimFits<G[I], D[I]> : true }[number]
          ? false
          : true
        : false
    : true
  : true;
type DimFits<G, E> = E extends number ? (number extends G ? true : G extends E ? true : false) : true;

type FeedOf<S> = S extends ModelTensor<infer T, infer _> ? TypedTensor<T> | EngineTensor : InferenceValue;
type OutputOf<S> =
  S extends ModelTensor<infer T, infer D> ? TypedTensor<T> & { readonly dims: DimsOf<D> } : InferenceValue;

/** Feeds of a model: each input, and what has a default if need be. */
export type FeedsOf<M extends ModelTypes> = { readonly [K in keyof M['inputs']]: FeedOf<M['inputs'][K]> } & {
  readonly [K in keyof M['optionalInputs']]?: FeedOf<M['optionalInputs'][K]>;
};
/** Results of a model. */
export type OutputsOf<M extends ModelTypes> = { readonly [K in keyof M['outputs']]: OutputOf<M['outputs'][K]> };

type SpecOf<M extends ModelTypes, K> = K extends keyof M['inputs']
  ? M['inputs'][K]
  : K extends keyof M['optionalInputs']
    ? M['optionalInputs'][K]
    : never;

/** `F`, with an error in the place of feeds that the model does not have, or whose known dims are not the model's. */
export type Checked<M extends ModelTypes, F> = {
  readonly [K in keyof F]: [SpecOf<M, K>] extends [never]
    ? { error: 'the model has no such input' }
    : SpecOf<M, K> extends ModelTensor<infer _, infer D>
      ? F[K] extends { readonly dims: infer G }
        ? Fits<G, D> extends true
          ? F[K]
          : { error: 'the model takes other dims'; expected: D }
        : F[K]
      : F[K];
};
