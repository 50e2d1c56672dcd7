import type { Session } from "./reply";
import type { Wish } from "./request";
import type { Service } from "./service";

/** SessionKeeper opens a session when the first run wants it, and knows which there is. */
export class SessionKeeper {
  current: Session | undefined;

  constructor(
    private readonly service: Service,
    private readonly changed: () => void,
  ) {}

  async ensure(wish: Wish, signal: AbortSignal): Promise<string> {
    if (this.current && this.current.language !== wish.language) await this.close();
    if (!this.current) {
      const { language, dependencies, network } = wish;
      this.current = await this.service.openSession({ language, ...(dependencies.length > 0 && { dependencies }), ...(network && { network }) }, signal);
      this.changed();
    }
    return this.current.id;
  }

  async restart(): Promise<void> {
    if (this.current) await this.service.restartSession(this.current.id);
  }

  async close(): Promise<void> {
    const { current } = this;
    this.forget();
    if (current) await this.service.closeSession(current.id).catch(() => undefined);
  }

  /** forget is for a session that has ended. */
  forget(): void {
    this.current = undefined;
    this.changed();
  }
}
