// What the service answers: the schemas of server/openapi.json that the page reads.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A picture or document of an output, which is stored. */
export interface BlobLink {
  name: string;
  url: string;
}

export type Bundle = { [mediaType: string]: Json | BlobLink };

export interface StreamOutput {
  cell: number;
  type: "stream";
  name: string;
  text: string;
  replaced_lines?: number;
}

export interface DisplayOutput {
  cell: number;
  type: "display" | "result";
  data: Bundle;
  display_id?: string;
  update?: boolean;
}

export interface ErrorOutput {
  cell: number;
  type: "error";
  name: string;
  message: string;
  traceback: string;
}

export type Output = StreamOutput | DisplayOutput | ErrorOutput;

export interface Image {
  name: string;
  media_type: string;
  bytes: number;
  width: number;
  height: number;
  url: string;
  data?: string;
  error?: string;
}

export interface MadeFile {
  path: string;
  name: string;
  media_type: string;
  bytes: number;
  sha256: string;
  url: string;
  expires_at: string | null;
  error?: string;
}

export interface Exception {
  name: string;
  message: string;
  traceback: string;
  cell: number;
  line: number;
}

export interface Usage {
  queue_ms: number;
  wall_ms: number;
  cpu_ms: number;
  peak_memory_bytes: number;
}

export interface Reply {
  id: string;
  status: string;
  text: string;
  outputs: Output[];
  images: Image[];
  files: MadeFile[];
  skipped: { path: string; reason: string }[];
  error: Exception | null;
  hint: string;
  notebook: { url: string } | null;
  truncated: boolean;
  session: { id: string; expires_at: string; kernel_restarted: boolean } | null;
  exit_code: number | null;
  usage: Usage;
}

export interface Language {
  name: string;
  language: string;
  aliases: string[];
  default: boolean;
  available: boolean;
  display_name: string;
  kernel: string;
  file_extension: string;
  packages: { name: string; version: string }[];
  notes: string[];
  dependencies?: { notation: string; allowed?: string[] };
}

export interface Limits {
  timeout_seconds: number;
  max_timeout_seconds: number;
  memory_bytes: number;
  max_body_bytes: number;
  max_upload_bytes: number;
  max_inputs: number;
  network: boolean;
  sessions: boolean;
}

export interface EnvironmentList {
  environments: Language[] | null;
  limits: Limits;
}

/** What a service does now, and a caller's last runs. */
export interface ServiceStatus {
  running: number | null;
  waiting: number | null;
  pool: { warm: number; starting: number; sessions: number; sandboxes: number } | null;
  runs: PastRun[];
}

export interface PastRun {
  id: string;
  language: string;
  session: boolean;
  status: string;
  started: string;
  queue_ms: number;
  wall_ms: number;
}

/** A page of a run, for others. */
export interface SharedLink {
  id: string;
  url: string;
  expires_at: string;
}

export interface Session {
  id: string;
  language: string;
  expires_at: string;
}
