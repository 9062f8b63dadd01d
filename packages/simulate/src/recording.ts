/**
 * `@sluice/simulate/recording`: records the requests that limiters of this process decide on, for `sluice simulate`. It loads
 * nothing of the replay.
 */

export { type Recording, type RecordingOptions, startRecording } from './recording/start-recording.js'
