/** A failure with a sentence for people; `at` is the place in a filter expression. */
export class ViewerError extends Error {
  readonly at: number | undefined;
  readonly status: number | undefined;

  constructor(message: string, options: { at?: number; status?: number } = {}) {
    super(message);
    this.name = "ViewerError";
    this.at = options.at;
    this.status = options.status;
  }
}
