/** What `env.logLevel` may be; an option `logSeverityLevel` counts them from 0. */
export const severities = ['verbose', 'info', 'warning', 'error', 'fatal'] as const;

/** A message of a session, as the options `onLog` hear it. */
export interface LogMessage {
  /** How grave it is. */
  readonly severity: 'verbose' | 'info' | 'warning' | 'error' | 'fatal';
  /** What it is about: 'load', 'run', 'provider', ... */
  readonly category: string;
  /** One line of text. */
  readonly message: string;
  /** The session's option `logId`. */
  readonly logId: string;
}

/**
 * Hears messages of sessions, one at a call. What it throws ends no load and no run: it is an uncaught error of the program's.
 */
export type LogListener = (message: LogMessage) => void;
