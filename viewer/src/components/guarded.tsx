// A page that breaks says so, and the rest of the viewer goes on.
import { Component, type ComponentChildren } from "preact";
import { Failure } from "./states";

export class Guarded extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  override state = { error: null as Error | null };

  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ error: error instanceof Error ? error : new Error(String(error)) });
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <Failure error={`This page could not be drawn: ${this.state.error.message}`}>
        <p>The other pages still work. Please report it with what you were looking at.</p>
      </Failure>
    );
  }
}
