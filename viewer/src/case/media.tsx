// Pictures, sounds and videos of a case: only by an address of our own, and one that cannot be shown says why.
import { useLoad } from "../loading";
import { bytes } from "../figures";
import type { Media } from "../types";

/** Gives the address that may be shown; the source makes it. */
export type MediaOf = (media: Media) => Promise<string>;

export function MediaList({ media, mediaOf }: { media: readonly Media[]; mediaOf: MediaOf }) {
  return <div class="media-list">{media.map((each) => <MediaView key={each.n} media={each} mediaOf={mediaOf} />)}</div>;
}

function MediaView({ media, mediaOf }: { media: Media; mediaOf: MediaOf }) {
  return (
    <figure class="media">
      {media.refused === null ? <Player media={media} mediaOf={mediaOf} /> : (
        <p class="media-refused"><span aria-hidden="true">⊘ </span>This {media.kind} is not shown: {media.refused}</p>
      )}
      <figcaption class="soft small">
        {media.place}{media.n_bytes > 0 && `, ${media.type}, ${bytes(media.n_bytes)}`}
        {media.address && <span class="mono"> {media.address}</span>}
      </figcaption>
    </figure>
  );
}

function Player({ media, mediaOf }: { media: Media; mediaOf: MediaOf }) {
  const { data, error } = useLoad(`${media.n}`, () => mediaOf(media));
  if (error) return <p class="media-refused">This {media.kind} could not be read: {error.message}</p>;
  if (data === null) return <p class="soft">…</p>;
  const label = `${media.kind} of ${media.place}`;
  if (media.kind === "audio") return <audio controls preload="metadata" src={data} aria-label={label} />;
  if (media.kind === "video") return <video controls preload="metadata" src={data} aria-label={label} />;
  return <img src={data} alt={label} loading="lazy" />;
}
