import { href, place } from "../address";
import { Empty } from "../components/states";

export function NotFound() {
  return (
    <Empty title={`There is no page "${place.value.path.join("/")}".`}>
      <a href={href(["runs"])}>All runs</a>
    </Empty>
  );
}
