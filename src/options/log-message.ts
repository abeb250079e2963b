/** A message of a session, as the options `onLog` hear it. */
export interface LogMessage {
  readonly severity: 'verbose' | 'info' | 'warning' | 'error' | 'fatal';
  /** What it is about: 'load', 'run', 'provider', ... */
  readonly category: string;
  readonly message: string;
  /** The session's option `logId`. */
  readonly logId: string;
}

export type LogListener = (message: LogMessage) => void;
