// The page of a document: goes to the linked passage.

import { startDocument } from "./document_view.js";
import { startPlayer } from "./player.js";

const passage = document.getElementById("place");

startPlayer();
startDocument(document);

// Screen readers start at the passage, too.
if (passage && location.hash === "#place") passage.focus({ preventScroll: true });

// A narrow page has room for the text only.
if (matchMedia("(max-width: 52rem)").matches) document.querySelector("details.document-index")?.removeAttribute("open");
document.querySelector(".document-index [aria-current]")?.scrollIntoView({ block: "nearest" });
